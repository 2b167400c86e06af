"""Methods that read which rows a fitted model holds and what it remembers of them."""

from __future__ import annotations

import contextlib
from abc import ABC
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from graftboost.estimators.parameters import CONSTRAINTS
from graftboost.estimators.row_memory import RowMemory
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_request import (
    LEAST_FIDELITY,
    UPDATE_PARAMETERS,
    check_fidelity,
    check_tolerance,
)
from graftboost.input.columns import Columns
from graftboost.input.row_ids import ids_to_remove

if TYPE_CHECKING:
    from graftboost._engine import EngineModel
    from graftboost.estimators.update_lock import UpdateLock


class RowHolder(ABC):
    """The methods that read the rows of a fitted model, and the checks before a change of it.

    `_classes` maps a number of classes to the classes; the engine's number of classes selects the
    current entry.
    """

    _engine_model: EngineModel
    _columns: Columns
    _update_lock: UpdateLock
    _next_id: int
    _classes: dict[int, NDArray[Any]]
    n_jobs: int | None
    max_bins: int
    split_sample: float
    fidelity: float
    memory_floor: float
    update_rule: str
    tolerance: float | None
    updatable: bool
    stats_memory: float | None

    @property
    def row_ids_(self) -> NDArray[np.int64]:
        """Ids of the rows that the model holds."""
        check_is_fitted(self)
        return self._engine_model.row_ids

    @property
    def n_rows_(self) -> int:
        """Number of rows that the model holds."""
        check_is_fitted(self)
        return self._engine_model.n_rows

    def memory(self, row_ids: ArrayLike | slice, *, fidelity: float | None = None) -> RowMemory:
        """Estimate what the model remembers of rows, without changing anything.

        Parameters
        ----------
        row_ids : int, array-like of int or bool, or slice
            The rows, as in `remove`.
        fidelity : float, default=None
            The target for which the work of removing them is estimated. Default: the parameter of
            the model.

        Returns
        -------
        RowMemory
            The memory of each row, and what it would take to forget all of them.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
        >>> model.memory(slice(0, 50)).remembered_ids[:3].tolist()
        [41, 47, 3]
        """
        if row_ids is None:
            raise ValueError("row_ids is None. Pass ids, a mask over row_ids_, or a slice of ids.")
        self._check_updatable()
        check_fidelity(fidelity)
        with self._update_lock.lock:
            self._read_update_parameters()
            ids = ids_to_remove(self._engine_model, row_ids, "row_ids")
            if not len(ids):
                return RowMemory(ids, np.zeros(0), self.memory_floor, 0.0)
            target = self.fidelity if fidelity is None else fidelity
            found, work = self._engine_model.memory_of(
                ids,
                max(float(target), LEAST_FIDELITY),
                self.memory_floor,
                thread_count(self.n_jobs),
            )
        return RowMemory(ids, found, self.memory_floor, work)

    def check_state(self) -> None:
        """Recompute every stored sum from the training rows, and compare exactly.

        Raises
        ------
        RuntimeError
            If stored sums do not match the training rows.
        """
        check_is_fitted(self)
        self._engine_model.check_state(thread_count(self.n_jobs))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_engine_model")

    def _check_updatable(self) -> None:
        check_is_fitted(self)
        if not self._engine_model.updatable:
            raise ValueError(
                "This model holds no rows: it was fitted or saved with updatable=False. "
                "Fit a new model with updatable=True."
            )

    def _read_update_parameters(self) -> dict[str, Any]:
        """Validate the parameters that updates read, and return them."""
        parameters = {name: getattr(self, name) for name in UPDATE_PARAMETERS}
        validate_parameter_constraints(
            {name: CONSTRAINTS[name] for name in UPDATE_PARAMETERS},
            parameters,
            caller_name=type(self).__name__,
        )
        check_tolerance(self.update_rule, self.tolerance)
        return parameters

    def _with_candidates(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of updates, with those that give the number of candidates."""
        return {**parameters, "split_sample": self.split_sample, "max_bins": self.max_bins}

    def _ids_to_remove(self, remove: ArrayLike | slice, argument: str) -> NDArray[np.int64]:
        check_is_fitted(self)
        return ids_to_remove(self._engine_model, remove, argument)

    def _forget_categories(self) -> None:
        """Replace categories that no row has any more by their fingerprints.

        This reads all rows, so it is done only after a refit and before the model is stored. The
        update itself has already succeeded and must not fail here, even if rows are held by
        processes that do not answer.
        """
        with contextlib.suppress(MemoryError, RuntimeError):
            self._columns = self._columns.held_by(self._engine_model)
