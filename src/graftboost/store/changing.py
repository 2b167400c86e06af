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
    Rule,
    UpdateRequest,
    check_fidelity,
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
    """Adding and removing rows, refitting and refreshing; users have a `Store`."""

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

        Returns
        -------
        UpdateReport
            What the update did.
        """
        if X is None:
            raise ValueError("X is None. Pass the features of the rows to add.")
        with self._thread_lock:
            report = self._update(X, y, sample_weight, row_ids, None, attributes, request, fidelity)
            self._compact_if_due()
        return report

    def remove(
        self,
        row_ids: ArrayLike | slice,
        *,
        request: str | None = None,
        fidelity: float | None = None,
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
            if self._model is None:  # then scikit-learn need not be imported
                change = state.removal(ids_to_remove(state.saved.engine_model, row_ids, "row_ids"))
            else:
                change = self._model._read_change(
                    None, None, None, None, row_ids, "row_ids", fidelity
                )
            report = self._commit_update(change, {}, "row_ids", request, fidelity)
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

        Returns
        -------
        UpdateReport
            What the update did.
        """
        with self._thread_lock:
            report = self._update(
                X, y, sample_weight, row_ids, remove, attributes, request, fidelity
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
    ) -> UpdateReport:
        state, _ = self._writable()
        start = time.perf_counter()
        with Copies() as copies:
            change = self.model._read_change(
                X, y, sample_weight, row_ids, remove, "remove", fidelity, copies
            )
            kept: dict[str, NDArray[Any]] = {}
            if change.added is not None:
                kept = state.attributes.check(attributes, len(change.added.ids))
            elif attributes is not None:
                raise ValueError("attributes is given without X. Pass both, or neither.")
            return self._commit_update(change, kept, "remove", request, fidelity, start)

    def _commit_update(
        self,
        change: UpdateRequest,
        attributes: Mapping[str, NDArray[Any]],
        argument: str,
        request: str | None,
        fidelity: float | None,
        start: float | None = None,
    ) -> UpdateReport:
        state, lock = self._writable()
        if change.is_empty:
            return change.apply(state.saved.engine_model, 1, argument=argument, start=start)
        request = request_id(request)
        parameters = self._update_parameters(state)
        change = replace(change, rule=Rule.of(state.saved.parameters, fidelity))
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
                strategy=report.strategy,
                nodes_regrown=report.nodes_regrown,
                rows_regrown=report.rows_regrown,
                forgetting=None if report.forgetting is None else asdict(report.forgetting),
                edges=edges,
            )
            seconds = report.seconds["total"]
            with lock.writing():
                state.commit(Record(receipt, parameters, change, attributes, seconds))
        return report

    def _commit_training(self, action: str, request: str | None) -> None:
        state, lock = self._writable()
        request = request_id(request)
        parameters = self._update_parameters(state)
        start = time.perf_counter()
        with self._durably():
            state.train(action)
            strategy = "refit" if action == "refit" else "in-place"
            receipt = self._receipt(request, action, strategy=strategy)
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
        strategy: str,
        removed: list[list[int]] | None = None,
        added: list[list[int]] | None = None,
        nodes_regrown: int = 0,
        rows_regrown: int = 0,
        forgetting: dict[str, float] | None = None,
        edges: str = "",
    ) -> Receipt:
        """Return the receipt of a change that was made to the model but is not yet written."""
        state = self._state
        return Receipt(
            state.number + 1,
            request,
            now(),
            action,
            removed or [],
            added or [],
            state.digest,
            digest(state.saved.engine_model),
            strategy,
            nodes_regrown,
            rows_regrown,
            forgetting,
            edges,
            state.last_hash,
        ).sealed()
