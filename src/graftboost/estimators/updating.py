"""Methods that add rows to a fitted model and remove rows from it."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from graftboost.estimators.memory import stats_bytes
from graftboost.estimators.parameters import CONSTRAINTS
from graftboost.estimators.pending import Pending
from graftboost.estimators.report import UpdateReport
from graftboost.estimators.row_memory import RowMemory
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_request import (
    LEAST_FIDELITY,
    UPDATE_PARAMETERS,
    AddedRows,
    RegrowRequest,
    Rule,
    UpdateRequest,
    check_fidelity,
    check_tolerance,
)
from graftboost.input.columns import Columns
from graftboost.input.row_ids import LARGEST_ID, NO_IDS, check_row_ids, ids_to_remove
from graftboost.input.rows import Rows
from graftboost.input.table import read_table
from graftboost.input.weights import check_weight
from graftboost.input.wiping import Copies, largest

if TYPE_CHECKING:
    from graftboost._engine import EngineModel
    from graftboost.estimators.update_lock import UpdateLock


def _has_partial_fit(model: Updatable) -> bool:
    if not model.updatable:
        raise AttributeError("partial_fit needs a model with updatable=True.")
    return True


class Updatable(ABC):
    """The methods that change which rows a fitted model holds.

    A call that raises has changed nothing, except that Ctrl-C may arrive just after the engine has
    completed the update. The update is then complete: `_next_id` and `_classes` are written before
    the engine is called, and restored if the engine has not made the update. `_classes` maps a
    number of classes to the classes; the engine's number of classes selects the current entry.
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

    def add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Add rows to the model.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features, with the columns of `fit`.
        y : array-like of shape (n_rows,)
            Targets. They may include classes that the model does not know yet.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, on the scale of the weights in `fit`. Default: one.
        row_ids : array-like of int of shape (n_rows,), default=None
            An id for each row that no other row of the model has. Default: consecutive ids after
            the largest id ever used.
        fidelity : float, default=None
            The target of this update. Default: the parameter of the model.
        regrow : bool, default=True
            Whether to regrow nodes until the target is reached. With False, the rows are only
            booked, in a time that does not depend on their effect; call `regrow` later.

        Returns
        -------
        UpdateReport
            What the update did.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = GraftBoostClassifier(n_estimators=20).fit(X[:500], y[:500])
        >>> report = model.add(X[500:], y[500:])
        >>> report.added_ids[:3], model.n_rows_
        (array([500, 501, 502]), 569)
        """
        if X is None:
            raise ValueError("X is None. Pass the features of the rows to add.")
        return self.update(X, y, sample_weight, row_ids=row_ids, fidelity=fidelity, regrow=regrow)

    def remove(
        self,
        row_ids: ArrayLike | slice,
        *,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Remove rows from the model.

        Parameters
        ----------
        row_ids : int, array-like of int or bool, or slice
            Ids of the rows, a mask over `row_ids_`, or a slice of ids: ``slice(100, 200)`` selects
            all rows of the model with ids from 100 to 199.
        fidelity : float, default=None
            The target of this update. Default: the parameter of the model.
        regrow : bool, default=True
            Whether to regrow nodes until the target is reached. With False, the rows are only
            booked, in a time that does not depend on their effect; call `regrow` later.

        Returns
        -------
        UpdateReport
            What the update did.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
        >>> model.remove([17, 4]).removed_ids
        array([17,  4])
        >>> model.n_rows_
        567
        """
        if row_ids is None:
            raise ValueError("row_ids is None. Pass ids, a mask over row_ids_, or a slice of ids.")
        return self._update(None, None, None, None, row_ids, "row_ids", fidelity, regrow)

    def update(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        remove: ArrayLike | slice | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Add and remove rows in one pass, for example for a sliding window.

        Parameters
        ----------
        X, y, sample_weight, row_ids
            Rows to add, as in `add`. Default: none.
        remove
            Rows to remove, as in `remove`. Default: none. An added row may have the id of a row
            that is removed in the same call.
        fidelity : float, default=None
            The target of this update. Default: the parameter of the model.
        regrow : bool, default=True
            Whether to regrow nodes until the target is reached. With False, the rows are only
            booked, in a time that does not depend on their effect; call `regrow` later.

        Returns
        -------
        UpdateReport
            What the update did.
        """
        return self._update(X, y, sample_weight, row_ids, remove, "remove", fidelity, regrow)

    def _update(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        remove: ArrayLike | slice | None,
        argument: str,
        fidelity: float | None,
        regrow: bool,
    ) -> UpdateReport:
        """Update; error messages call the rows to remove `argument`."""
        start = time.perf_counter()
        self._check_updatable()
        with self._update_lock.lock, Copies() as copies:
            change = self._read_change(
                X, y, sample_weight, row_ids, remove, argument, fidelity, regrow, copies
            )
            report = self._apply(change, argument, start)
        return report  # noqa: RET504 - outside the block, so that Ctrl-C always releases the lock

    def _read_change(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        remove: ArrayLike | slice | None,
        argument: str,
        fidelity: float | None = None,
        regrow: bool = True,
        copies: Copies | None = None,
    ) -> UpdateRequest:
        """Validate the arguments of an update and encode them for the engine.

        New arrays are registered in `copies`, to be overwritten after the update.
        """
        parameters = self._read_update_parameters()
        rule = Rule.of(self._with_candidates(parameters), fidelity, regrow)
        removed = NO_IDS if remove is None else ids_to_remove(self._engine_model, remove, argument)
        added, relabel, classes = self._rows_to_add(
            X, y, sample_weight, row_ids, Copies() if copies is None else copies
        )
        return UpdateRequest(rule, removed, added, classes, relabel)

    def _with_candidates(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of updates, with those that give the number of candidates."""
        return {**parameters, "split_sample": self.split_sample, "max_bins": self.max_bins}

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

    def _apply(self, change: UpdateRequest, argument: str, start: float) -> UpdateReport:
        """Call the engine, and keep `_next_id` and `_classes` consistent with its result."""
        engine_model, n_threads = self._engine_model, thread_count(self.n_jobs)
        next_id, n_changes = self._next_id, engine_model.n_changes
        last_id = next_id - 1 if change.added is None else largest(change.added.ids)
        classes = {} if change.classes is None else {len(change.classes): change.classes}
        unseen = classes.keys() - getattr(self, "_classes", {}).keys()
        engine_model.histogram_memory = stats_bytes(self.stats_memory)
        try:
            self._next_id = max(next_id, last_id + 1)
            if unseen:
                self._classes.update(classes)
            report = change.apply(engine_model, n_threads, argument=argument, start=start)
        except BaseException:
            # Ctrl-C may arrive before or after the engine has made the update.
            if engine_model.n_changes == n_changes:
                self._next_id = next_id
                for number in unseen:
                    self._classes.pop(number, None)
            raise
        if report.strategy == "refit" and len(change.removed):
            self._forget_categories()
        return report

    def _forget_categories(self) -> None:
        """Replace categories that no row has any more by their fingerprints.

        This reads all rows, so it is done only after a refit and before the model is stored. The
        update itself has already succeeded and must not fail here.
        """
        with contextlib.suppress(MemoryError):
            self._columns = self._columns.held_by(self._engine_model)

    def _check_updatable(self) -> None:
        check_is_fitted(self)
        if not self._engine_model.updatable:
            raise ValueError(
                "This model holds no rows: it was fitted or saved with updatable=False. "
                "Fit a new model with updatable=True."
            )

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows, like scikit-learn's incremental estimators; the first call fits.

        Parameters
        ----------
        X, y, sample_weight
            Rows to add, as in `add`.
        classes : array-like, default=None
            Ignored; present for API compatibility. Classes are learned when they first occur.

        Returns
        -------
        self
            The estimator.
        """
        if self.__sklearn_is_fitted__():
            self.add(X, y, sample_weight)
        else:
            self.fit(X, y, sample_weight)
        return self

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
        [40, 38, 5]
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

    def regrow(self, work: float | None = None, *, fidelity: float | None = None) -> UpdateReport:
        """Regrow nodes for all rows that were added or removed with ``regrow=False``.

        Regrowing a node takes the same time for one changed row as for fifty, so this is cheaper
        than regrowing after each update. Nodes are regrown in the order of what they are worth.

        Parameters
        ----------
        work : float, default=None
            The most work to do, as a fraction of a refit: the rows of the regrown nodes, relative
            to all rows in all trees. At least one node is regrown or shifted. Call again to
            continue. Default: no limit; the model is refitted if that is cheaper.
        fidelity : float, default=None
            The target for all these rows together. Default: the parameter of the model.

        Returns
        -------
        UpdateReport
            What was done. `rows_deferred` is 0 if the target is reached.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
        >>> for row_id in range(8):
        ...     report = model.remove(row_id, regrow=False)
        >>> report.rows_deferred, model.regrow().rows_deferred
        (8, 0)
        """
        self._check_updatable()
        with self._update_lock.lock:
            request = RegrowRequest.of(
                self._with_candidates(self._read_update_parameters()), work, fidelity
            )
            self._engine_model.histogram_memory = stats_bytes(self.stats_memory)
            report = request.apply(self._engine_model, thread_count(self.n_jobs))
            if report.strategy == "refit":
                self._forget_categories()
        return report

    @property
    def pending_(self) -> Pending:
        """What `regrow` has to do for rows that were added or removed with ``regrow=False``."""
        self._check_updatable()
        with self._update_lock.lock:
            self._read_update_parameters()
            return Pending.of(
                self._engine_model, self.fidelity, self.memory_floor, thread_count(self.n_jobs)
            )

    def refit(self) -> Self:
        """Train all trees again on the rows that the model holds.

        The result is, bit for bit, the model that `fit` trains on these rows with the same bins.

        Returns
        -------
        self
            The estimator.
        """
        self._check_updatable()
        with self._update_lock.lock:
            self._engine_model.histogram_memory = stats_bytes(self.stats_memory)
            self._engine_model.refit(thread_count(self.n_jobs))
            self._forget_categories()
        return self

    def refresh(self) -> Self:
        """Recompute leaf values on the current rows, keeping the structure.

        Rows outside regrown nodes keep their recorded gradients while earlier trees change, so the
        leaf values drift slightly. A refresh records fresh gradients for all rows, in about the
        time of a prediction for them. Splits do not change. The first update after a refresh
        recomputes all histograms and takes longer, but not longer than a refit.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
        >>> report = model.remove(slice(0, 10))
        >>> model.refresh().check_state()
        """
        self._check_updatable()
        with self._update_lock.lock:
            self._engine_model.refresh(thread_count(self.n_jobs))
        return self

    def check_state(self) -> None:
        """Recompute every stored sum from the training rows, and compare exactly.

        Raises
        ------
        RuntimeError
            If stored sums do not match the training rows.
        """
        check_is_fitted(self)
        self._engine_model.check_state(thread_count(self.n_jobs))

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

    def _ids_to_remove(self, remove: ArrayLike | slice, argument: str) -> NDArray[np.int64]:
        check_is_fitted(self)
        return ids_to_remove(self._engine_model, remove, argument)

    def _rows_to_add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        copies: Copies,
    ) -> tuple[AddedRows | None, list[int], NDArray[Any] | None]:
        """Return the rows, the new code of each known class, and the classes after the update."""
        classes = getattr(self, "classes_", None)
        same = [] if classes is None else list(range(len(classes)))
        if X is None:
            for argument, value in [
                ("y", y),
                ("sample_weight", sample_weight),
                ("row_ids", row_ids),
            ]:
                if value is not None:
                    raise ValueError(f"{argument} is given without X. Pass both, or neither.")
            return None, same, classes
        table = read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        target, relabel, classes = self._read_added_target(y, table.n_rows)
        ids = check_row_ids(row_ids, table.n_rows)
        if ids is None:
            if self._next_id + table.n_rows - 1 > LARGEST_ID:
                raise ValueError(
                    "row_ids is required: default ids continue after the largest id ever used, "
                    f"{self._next_id - 1}, but ids cannot exceed {LARGEST_ID}. Pass unused ids."
                )
            ids = np.arange(self._next_id, self._next_id + table.n_rows, dtype=np.int64)
        weight = check_weight(sample_weight, table.n_rows, all_may_be_zero=True)
        rows = Rows(self._columns.encode(table, copies), target, weight, ids, copies)
        rows = rows.weighed_by_class(self._added_class_weights(classes))
        return AddedRows(rows.X, rows.y, rows.weight, ids), relabel, classes

    @abstractmethod
    def _read_added_target(
        self, y: Any, n_rows: int
    ) -> tuple[NDArray[np.float64], list[int], NDArray[Any] | None]:
        """Return the target of added rows, the new code of each known class, and all classes."""

    def _added_class_weights(self, classes: NDArray[Any] | None) -> NDArray[np.float64] | None:
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_engine_model")

    if TYPE_CHECKING:

        def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
            """Train a model."""
            ...
