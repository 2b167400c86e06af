"""Rows into and out of a fitted model."""

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
from graftboost.estimators.report import UpdateReport
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_request import UPDATE_PARAMETERS, AddedRows, Change, Rule
from graftboost.input.columns import Columns
from graftboost.input.row_ids import LARGEST_ID, NO_IDS, check_row_ids, ids_to_remove
from graftboost.input.rows import Rows
from graftboost.input.table import read_table
from graftboost.input.weights import check_weight
from graftboost.input.wiping import Copies, largest

if TYPE_CHECKING:
    from graftboost._engine import Forest
    from graftboost.estimators.update_lock import UpdateLock


def _is_to_be_updatable(model: Updatable) -> bool:
    if not model.updatable:
        raise AttributeError("partial_fit needs a model with updatable=True.")
    return True


class Updatable(ABC):
    """The methods that change which rows a fitted model holds.

    A call that raises has changed nothing, except that Ctrl-C may arrive just after the engine has
    done all of the update. Nothing is left to do by then: `_next_id` is advanced and `_classes`
    written before the engine is called, and taken back if the engine has not done the update.
    `_classes` has the classes for each number of them, and is read by how many the engine has.
    """

    _forest: Forest
    _columns: Columns
    _update_lock: UpdateLock
    _next_id: int
    _classes: dict[int, NDArray[Any]]
    n_jobs: int | None
    max_bins: int
    split_sample: float
    tolerance_rule: str
    tolerance: float
    updatable: bool
    stats_memory: float | None

    def add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
    ) -> UpdateReport:
        """Add rows to the model.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features, with the columns of `fit`.
        y : array-like of shape (n_rows,)
            Targets. Classes that the model does not know yet make it grow.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, on the scale of the weights in `fit`; one, if not given.
        row_ids : array-like of int of shape (n_rows,), default=None
            An id for each row, which no other row that the model holds has. Without, ids go on
            from the largest one ever used.

        Returns
        -------
        UpdateReport
            What was done.

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
        return self.update(X, y, sample_weight, row_ids=row_ids)

    def remove(self, row_ids: ArrayLike | slice) -> UpdateReport:
        """Remove rows from the model.

        Parameters
        ----------
        row_ids : int, array-like of int or bool, or slice
            Ids of the rows, or a mask over `row_ids_`, or a slice of ids: ``slice(100, 200)`` are
            the rows held whose ids lie from 100 to 199.

        Returns
        -------
        UpdateReport
            What was done.

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
        return self._update(None, None, None, None, row_ids, "row_ids")

    def update(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        remove: ArrayLike | slice | None = None,
    ) -> UpdateReport:
        """Add and remove rows in one pass, as a sliding window does.

        Parameters
        ----------
        X, y, sample_weight, row_ids
            Rows to add, as in `add`; may be left out.
        remove
            Rows to remove, as in `remove`; may be left out. A row that is removed frees its id
            for one that is added in the same call.

        Returns
        -------
        UpdateReport
            What was done.
        """
        return self._update(X, y, sample_weight, row_ids, remove, "remove")

    def _update(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        remove: ArrayLike | slice | None,
        argument: str,
    ) -> UpdateReport:
        """Update; `argument` is what the caller calls the rows to remove."""
        start = time.perf_counter()
        self._check_updatable()
        with self._update_lock.lock, Copies() as copies:
            change = self._read_change(X, y, sample_weight, row_ids, remove, argument, copies)
            report = self._apply(change, argument, start)
        return report  # noqa: RET504 - not inside: whenever Ctrl-C comes, the lock is let go of

    def _read_change(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        remove: ArrayLike | slice | None,
        argument: str,
        copies: Copies | None = None,
    ) -> Change:
        """Check what a caller wants done, and make it ready for the engine.

        `copies` takes note of arrays in the change that nobody else holds.
        """
        self._read_update_parameters()
        removed = NO_IDS if remove is None else ids_to_remove(self._forest, remove, argument)
        added, relabel, classes = self._rows_to_add(
            X, y, sample_weight, row_ids, Copies() if copies is None else copies
        )
        rule = Rule.of(self.tolerance_rule, self.tolerance, self.split_sample, self.max_bins)
        return Change(rule, removed, added, classes, relabel)

    def _read_update_parameters(self) -> dict[str, Any]:
        """Check the parameters that updates read, and return them."""
        parameters = {name: getattr(self, name) for name in UPDATE_PARAMETERS}
        validate_parameter_constraints(
            {name: CONSTRAINTS[name] for name in UPDATE_PARAMETERS},
            parameters,
            caller_name=type(self).__name__,
        )
        return parameters

    def _apply(self, change: Change, argument: str, start: float) -> UpdateReport:
        """Call the engine, with all written down that follows from its success."""
        forest, n_threads = self._forest, thread_count(self.n_jobs)
        next_id, n_changes = self._next_id, forest.n_changes
        last_id = next_id - 1 if change.added is None else largest(change.added.ids)
        classes = {} if change.classes is None else {len(change.classes): change.classes}
        unseen = classes.keys() - getattr(self, "_classes", {}).keys()
        forest.stats_memory = stats_bytes(self.stats_memory)
        try:
            self._next_id = max(next_id, last_id + 1)
            if unseen:
                self._classes.update(classes)
            report = change.apply(forest, n_threads, argument=argument, start=start)
        except BaseException:
            # Ctrl-C comes before the engine has done its work, or after: the engine tells which.
            if forest.n_changes == n_changes:
                self._next_id = next_id
                for number in unseen:
                    self._classes.pop(number, None)
            raise
        if report.strategy == "refit" and len(change.removed):
            self._forget_categories()
        return report

    def _forget_categories(self) -> None:
        """Keep no more than a fingerprint of each category that no row has any more.

        This walks over all rows, so it is done where the engine has done so too, and before the
        model is stored. The update itself has succeeded by now, and is not to fail here.
        """
        with contextlib.suppress(MemoryError):
            self._columns = self._columns.held_by(self._forest)

    def _check_updatable(self) -> None:
        check_is_fitted(self)
        if not self._forest.updatable:
            raise ValueError(
                "This model holds no rows: it was fitted, or saved, with updatable=False. "
                "Fit it anew with updatable=True."
            )

    @available_if(_is_to_be_updatable)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows, as scikit-learn's streaming estimators do; the first call fits.

        Parameters
        ----------
        X, y, sample_weight
            Rows to add, as in `add`.
        classes : array-like, default=None
            Taken for the sake of the interface, and not needed: classes are learned as they come.

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

    def refit(self) -> Self:
        """Train all trees again from the rows that the model holds.

        The model is then, bit for bit, the one that `fit` makes of these rows with the same bins.

        Returns
        -------
        self
            The estimator.
        """
        self._check_updatable()
        with self._update_lock.lock:
            self._forest.stats_memory = stats_bytes(self.stats_memory)
            self._forest.refit(thread_count(self.n_jobs))
            self._forget_categories()
        return self

    def refresh(self) -> Self:
        """Bring leaf values to those that the trees as they are have on the rows held.

        Rows keep the gradients that they recorded while the trees before them change, so leaf
        values drift a little from what the present rows would give. This records all gradients
        anew, in about the time of a prediction for the rows held. Which nodes split, and where,
        does not change. The first update afterwards counts the sums of all candidates again and
        takes longer for it, though no longer than a refit.

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
            self._forest.refresh(thread_count(self.n_jobs))
        return self

    def check_state(self) -> None:
        """Recount every sum that the model stores from the rows that it holds.

        Raises
        ------
        RuntimeError
            If one differs, by however little.
        """
        check_is_fitted(self)
        self._forest.check_state(thread_count(self.n_jobs))

    @property
    def row_ids_(self) -> NDArray[np.int64]:
        """Ids of the rows that the model holds."""
        check_is_fitted(self)
        return self._forest.row_ids

    @property
    def n_rows_(self) -> int:
        """How many rows the model holds."""
        check_is_fitted(self)
        return self._forest.n_rows

    def _ids_to_remove(self, remove: ArrayLike | slice, argument: str) -> NDArray[np.int64]:
        check_is_fitted(self)
        return ids_to_remove(self._forest, remove, argument)

    def _rows_to_add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        copies: Copies,
    ) -> tuple[AddedRows | None, list[int], NDArray[Any] | None]:
        """Return the rows, the new code of each old class, and the classes there are then."""
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
                    f"row_ids is needed: ids go on from the largest one used, {self._next_id - 1}, "
                    f"and none larger than {LARGEST_ID} is left for the {table.n_rows} rows of X. "
                    "Pass ids that are free."
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
        """Return the target of added rows, the new code of each old class, and all classes."""

    def _added_class_weights(self, classes: NDArray[Any] | None) -> NDArray[np.float64] | None:
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_forest")

    if TYPE_CHECKING:

        def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
            """Train a model."""
            ...
