"""Methods that add rows to a fitted model and remove rows from it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from graftboost.estimators.added_rows import AddedRowReader
from graftboost.estimators.memory import stats_bytes
from graftboost.estimators.regrowing import Regrowable
from graftboost.estimators.report import UpdateReport
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_request import Rule, UpdateRequest
from graftboost.input.row_ids import NO_IDS, ids_to_remove
from graftboost.input.wiping import Copies, largest


def _has_partial_fit(model: Updatable) -> bool:
    if not model.updatable:
        raise AttributeError("partial_fit needs a model with updatable=True.")
    return True


class Updatable(AddedRowReader, Regrowable):
    """The methods that change which rows a fitted model holds.

    A call that raises has changed nothing, except that Ctrl-C may arrive just after the engine has
    completed the update. The update is then complete: `_next_id` and `_classes` are written before
    the engine is called, and restored if the engine has not made the update.
    """

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

    if TYPE_CHECKING:

        def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
            """Train a model."""
            ...
