"""The methods that change a store: each change is on the disk when its call returns."""

from __future__ import annotations

import contextlib
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from numpy.typing import ArrayLike, NDArray

from graftboost.estimators.report import UpdateReport
from graftboost.estimators.update_request import (
    UPDATE_PARAMETERS,
    RegrowRequest,
    Rule,
    UpdateRequest,
    check_fidelity,
    check_regrow,
)
from graftboost.input.row_ids import ids_to_remove
from graftboost.input.wiping import Copies
from graftboost.store.digest import digest
from graftboost.store.lock import Lock
from graftboost.store.reading import StoreReading
from graftboost.store.receipts import Receipt, as_ranges, now, request_id
from graftboost.store.records import Record
from graftboost.store.state import State


class StoreChanges(StoreReading):
    """Adding and removing rows, regrowing, refitting, refreshing; users have a `Store`."""

    @abstractmethod
    def _writable(self) -> tuple[State, Lock]:
        """Return the state to change, and the lock that allows it; raises StoreError if none."""

    @abstractmethod
    def _durably(self) -> contextlib.AbstractContextManager[None]:
        """Restore the state on the disk if a change made in the block cannot be written."""

    @abstractmethod
    def _compact_if_due(self) -> None:
        """Compact the store if enough changes have been written since the last time."""

    def add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        attributes: Mapping[str, Any] | None = None,
        request: str | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Add rows, as the estimator's `add` does.

        Parameters
        ----------
        X, y, sample_weight, row_ids
            The rows, as the estimator's `add` takes them.
        attributes : mapping of str to array-like, default=None
            One value per row for each column that is kept beside the rows.
        request : str, default=None
            The id of this request in the receipt. Default: a new id.
        fidelity : float, default=None
            The target of this update. Default: the parameter of the model.
        regrow : bool, default=True
            Whether to regrow nodes. With False, the rows are only booked; call `regrow` later.

        Returns
        -------
        UpdateReport
            What the update did.
        """
        if X is None:
            raise ValueError("X is None. Pass the features of the rows to add.")
        with self._thread_lock:
            report = self._update(
                X, y, sample_weight, row_ids, None, attributes, request, fidelity, regrow
            )
            self._compact_if_due()
        return report

    def remove(
        self,
        row_ids: ArrayLike | slice,
        *,
        request: str | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Remove rows, as the estimator's `remove` does.

        Parameters
        ----------
        row_ids : int, array-like of int or bool, or slice
            The rows; `find` returns the ids of rows with given attributes.
        request : str, default=None
            The id of this request in the receipt. Default: a new id.
        fidelity : float, default=None
            The target of this update. Default: the parameter of the model.
        regrow : bool, default=True
            Whether to regrow nodes. With False, the rows are only booked; call `regrow` later.

        Returns
        -------
        UpdateReport
            What the update did.
        """
        if row_ids is None:
            raise ValueError("row_ids is None. Pass ids, a mask over row_ids, or a slice of ids.")
        check_fidelity(fidelity)
        with self._thread_lock:
            state, _ = self._writable()
            rule = state.saved.parameters["update_rule"]
            check_regrow(regrow, fidelity, rule if self._model is None else self._model.update_rule)
            if self._model is None:  # then scikit-learn need not be imported
                change = state.removal(ids_to_remove(state.saved.engine_model, row_ids, "row_ids"))
            else:
                change = self._model._read_change(
                    None, None, None, None, row_ids, "row_ids", fidelity, regrow
                )
            report = self._commit_update(change, {}, "row_ids", request, fidelity, regrow)
            self._compact_if_due()
        return report

    def update(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        remove: ArrayLike | slice | None = None,
        attributes: Mapping[str, Any] | None = None,
        request: str | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Add and remove rows in one pass, as the estimator's `update` does.

        Parameters
        ----------
        X, y, sample_weight, row_ids, remove
            The rows, as the estimator's `update` takes them.
        attributes : mapping of str to array-like, default=None
            One value per row for each column that is kept beside the rows.
        request : str, default=None
            The id of this request in the receipt. Default: a new id.
        fidelity : float, default=None
            The target of this update. Default: the parameter of the model.
        regrow : bool, default=True
            Whether to regrow nodes. With False, the rows are only booked; call `regrow` later.

        Returns
        -------
        UpdateReport
            What the update did.
        """
        with self._thread_lock:
            report = self._update(
                X, y, sample_weight, row_ids, remove, attributes, request, fidelity, regrow
            )
            self._compact_if_due()
        return report

    def refit(self, *, request: str | None = None) -> None:
        """Train all trees again on the rows the model holds, as the estimator's `refit` does.

        Parameters
        ----------
        request : str, default=None
            The id of this request in the receipt. Default: a new id.
        """
        with self._thread_lock:
            self._commit_training("refit", request)
            self._compact_if_due()

    def refresh(self, *, request: str | None = None) -> None:
        """Recompute all leaf values, as the estimator's `refresh` does.

        Parameters
        ----------
        request : str, default=None
            The id of this request in the receipt. Default: a new id.
        """
        with self._thread_lock:
            self._commit_training("refresh", request)
            self._compact_if_due()

    def _update(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        remove: ArrayLike | slice | None,
        attributes: Mapping[str, Any] | None,
        request: str | None,
        fidelity: float | None,
        regrow: bool,
    ) -> UpdateReport:
        state, _ = self._writable()
        start = time.perf_counter()
        with Copies() as copies:
            change = self.model._read_change(
                X, y, sample_weight, row_ids, remove, "remove", fidelity, regrow, copies
            )
            kept: dict[str, NDArray[Any]] = {}
            if change.added is not None:
                kept = state.attributes.check(attributes, len(change.added.ids))
            elif attributes is not None:
                raise ValueError("attributes is given without X. Pass both, or neither.")
            return self._commit_update(change, kept, "remove", request, fidelity, regrow, start)

    def _commit_update(
        self,
        change: UpdateRequest,
        attributes: Mapping[str, NDArray[Any]],
        argument: str,
        request: str | None,
        fidelity: float | None,
        regrow: bool,
        start: float | None = None,
    ) -> UpdateReport:
        state, lock = self._writable()
        if change.is_empty:
            return change.apply(state.saved.engine_model, 1, argument=argument, start=start)
        request = request_id(request)
        parameters = self._update_parameters(state)
        change = replace(change, rule=Rule.of(state.saved.parameters, fidelity, regrow))
        edges = state.edges(change.removed)
        with self._durably():
            report = state.apply(change, argument=argument, start=start)
            state.note(change, attributes)
            if self._model is not None:
                self._model._next_id = state.saved.next_id
            receipt = self._receipt(
                request,
                "update",
                removed=as_ranges(change.removed),
                added=as_ranges(change.added_ids),
                report=report,
                deferred=not regrow and report.strategy == "in-place",
                edges=edges,
            )
            seconds = report.seconds["total"]
            with lock.writing():
                state.commit(Record(receipt, parameters, change, attributes, seconds=seconds))
        return report

    def regrow(
        self,
        work: float | None = None,
        *,
        fidelity: float | None = None,
        request: str | None = None,
    ) -> UpdateReport:
        """Regrow nodes for rows that were only booked, as the estimator's `regrow` does.

        Parameters
        ----------
        work : float, default=None
            The most work to do, as a fraction of a refit. Default: no limit.
        fidelity : float, default=None
            The target for all these rows together. Default: the parameter of the model.
        request : str, default=None
            The id of this request in the receipt. Default: a new id.

        Returns
        -------
        UpdateReport
            What was done. If no rows were only booked, nothing is, and there is no receipt.
        """
        with self._thread_lock:
            report = self._commit_regrowing(work, fidelity, request)
            self._compact_if_due()
        return report

    def _commit_regrowing(
        self, work: float | None, fidelity: float | None, request: str | None
    ) -> UpdateReport:
        state, lock = self._writable()
        request = request_id(request)
        parameters = self._update_parameters(state)
        regrowing = RegrowRequest.of(state.saved.parameters, work, fidelity)
        if not state.saved.engine_model.rows_deferred:
            return regrowing.apply(state.saved.engine_model, 1)
        with self._durably():
            report = state.regrow(regrowing)
            receipt = self._receipt(request, "regrow", report=report)
            seconds = report.seconds["total"]
            with lock.writing():
                state.commit(Record(receipt, parameters, regrowing=regrowing, seconds=seconds))
        return report

    def _commit_training(self, action: str, request: str | None) -> None:
        state, lock = self._writable()
        request = request_id(request)
        parameters = self._update_parameters(state)
        start = time.perf_counter()
        with self._durably():
            state.train(action)
            receipt = self._receipt(request, action)
            seconds = time.perf_counter() - start
            with lock.writing():
                state.commit(Record(receipt, parameters, seconds=seconds))

    def _update_parameters(self, state: State) -> dict[str, Any]:
        """Return the parameters that updates read; users set them on the estimator."""
        parameters = state.saved.parameters
        if self._model is not None:
            parameters.update(self._model._read_update_parameters())
        return {name: parameters[name] for name in UPDATE_PARAMETERS}

    def _receipt(
        self,
        request: str,
        action: str,
        *,
        removed: list[list[int]] | None = None,
        added: list[list[int]] | None = None,
        report: UpdateReport | None = None,
        deferred: bool = False,
        edges: str = "",
    ) -> Receipt:
        """Return the receipt of a change that was made to the model but is not yet written."""
        state = self._state
        forgetting = None if report is None else report.forgetting
        strategy = "refit" if action == "refit" else "in-place"
        return Receipt(
            state.number + 1,
            request,
            now(),
            action,
            removed or [],
            added or [],
            state.digest,
            digest(state.saved.engine_model),
            strategy if report is None else report.strategy,
            0 if report is None else report.nodes_regrown,
            0 if report is None else report.rows_regrown,
            None if forgetting is None else asdict(forgetting),
            deferred,
            state.saved.engine_model.rows_deferred,
            edges,
            state.last_hash,
        ).sealed()
