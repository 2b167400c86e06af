"""The methods that read a store."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.persistence import file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store.conditions import where
from graftboost.store.digest import digest
from graftboost.store.errors import StoreError
from graftboost.store.journal import Journal
from graftboost.store.receipt_log import ReceiptLog
from graftboost.store.receipts import Receipt, find_break
from graftboost.store.records import Record
from graftboost.store.state import State

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor
    from graftboost.estimators.pending import Pending


class StoreReading(ABC):
    """Access to the model, the attributes and the receipts; users have a `Store`."""

    path: Path
    _thread_lock: threading.RLock
    _model: GraftBoostClassifier | GraftBoostRegressor | None

    @property
    @abstractmethod
    def _state(self) -> State:
        """The state of the store; raises StoreError if it is closed."""

    @property
    def model(self) -> GraftBoostClassifier | GraftBoostRegressor:
        """The estimator of the store.

        Read-only: changes made through it are not persisted. The parameters that updates read, such
        as `fidelity`, can be set on it; see `Store`.
        """
        model = self._model
        if model is not None:  # without the lock, so that predictions do not wait for changes
            return model
        with self._thread_lock:
            if self._model is None:
                from graftboost.estimators.loading import restored

                self._model = restored(self._state.saved, str(self.path))
            return self._model

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the estimator."""
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class probabilities of a classifier."""
        probabilities: NDArray[np.float64] = self._of_model("predict_proba")(X)
        return probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the raw scores of a classifier."""
        scores: NDArray[np.float64] = self._of_model("decision_function")(X)
        return scores

    def _of_model(self, name: str) -> Any:
        if not hasattr(self.model, name):
            raise AttributeError(
                f"The store contains a {type(self.model).__name__}, which has no {name}."
            )
        return getattr(self.model, name)

    @property
    def n_rows(self) -> int:
        """Number of rows that the model holds."""
        return self._state.saved.engine_model.n_rows

    @property
    def row_ids(self) -> NDArray[np.int64]:
        """Ids of the rows that the model holds."""
        return self._state.saved.engine_model.row_ids

    @property
    def n_trees(self) -> int:
        """Number of trees of the model."""
        return self._state.saved.engine_model.n_trees

    @property
    def digest(self) -> str:
        """The digest of the model."""
        return self._state.digest

    @property
    def notes(self) -> dict[str, Any]:
        """The notes passed to `Store.create`."""
        return self._state.notes

    @property
    def attribute_names(self) -> list[str]:
        """Names of the attributes."""
        return list(self._state.attributes.columns)

    def is_text(self, attribute: str) -> bool:
        """Tell whether an attribute contains text."""
        return bool(self._state.attributes.columns[attribute].dtype == object)

    def summary(self) -> dict[str, Any]:
        """Return a summary of the store."""
        saved = self._state.saved
        classes = saved.classes.get(saved.n_classes)
        return {
            "model": saved.estimator,
            "rows": saved.engine_model.n_rows,
            "features": saved.engine_model.bins.n_features,
            "classes": None if classes is None else [str(label) for label in classes],
            "trees": saved.engine_model.n_trees,
            "attributes": self.attribute_names,
            "rows_not_yet_regrown": saved.engine_model.rows_deferred,
        }

    def find(self, condition: str) -> NDArray[np.int64]:
        """Return the ids of rows with given attributes.

        Parameters
        ----------
        condition : str
            A condition such as ``customer == 17 and region in ("north", "west")``. "row_id" is the
            id itself.

        Returns
        -------
        ndarray of int64
            The ids.
        """
        with self._thread_lock:
            kept = self._state.attributes
            ids = kept.ids if kept else self.row_ids
            return ids[where(condition, {"row_id": ids, **kept.columns})]

    def receipts(self) -> Iterator[Receipt]:
        """Yield the receipts of all changes, from the first to the last.

        They are read one by one, so memory use does not depend on their number.
        """
        with self._thread_lock:
            state = self._state
            # Copies, which do not change when a writer adds receipts meanwhile.
            log = ReceiptLog(state.log.path, state.log.begin, state.log.size)
            unlogged = list(state.unlogged)
        yield from log.read()
        yield from unlogged

    def history(self) -> list[Receipt]:
        """Return the receipts of all changes, from the first to the last."""
        return list(self.receipts())

    @property
    def last_receipt(self) -> Receipt:
        """The receipt of the last change."""
        with self._thread_lock:
            state = self._state
            return state.unlogged[-1] if state.unlogged else state.log.last()

    def receipt(self, request: str | int) -> Receipt:
        """Return the receipt of a request, by its id or by the number of the change."""
        numbered = None
        for receipt in self.receipts():
            if receipt.request == request:
                return receipt
            if str(receipt.number) == str(request):
                numbered = receipt
        if numbered is None:
            raise KeyError(f"There is no receipt for {request!r}. history() returns all receipts.")
        return numbered

    def refitted_since(self, receipt: Receipt) -> bool:
        """Tell whether all trees were refitted by a change or after it.

        The trees are then those of a model that was trained without the removed rows, with the same
        bins and the same number of iterations.
        """
        return any(
            later.strategy == "refit" and later.number >= receipt.number
            for later in self.receipts()
        )

    def regrown_by(self, receipt: Receipt) -> Receipt | None:
        """Return the receipt of the change that regrew nodes for rows which were only booked.

        Parameters
        ----------
        receipt : Receipt
            The receipt of an update with ``regrow=False``.

        Returns
        -------
        Receipt or None
            None if that is yet to be done.
        """
        for later in self.receipts():
            if later.number > receipt.number and not later.rows_deferred:
                return later
        return None

    @property
    def pending(self) -> Pending:
        """What `regrow` has to do for rows that were only booked."""
        with self._thread_lock:
            return self.model.pending_

    def verify(self) -> None:
        """Verify the chain of receipts, all checksums, and every stored sum of the model.

        Raises
        ------
        StoreError or InvalidFileError
            If something does not match.
        """
        with self._thread_lock:
            state = self._state
            self._verify_receipts(state)
            self._verify_files(state)
            state.check_model()
            if digest(state.saved.engine_model) != state.digest:
                raise StoreError(
                    f"The model in {self.path} does not match its last receipt. Restore the store "
                    "from a backup."
                )
            kept, held = state.attributes, state.saved.engine_model.row_ids
            if kept and not np.array_equal(np.sort(kept.ids), np.sort(held)):
                raise StoreError(
                    f"The attributes in {self.path} do not match its rows. Restore the store from "
                    "a backup."
                )
            try:
                state.saved.engine_model.check_state(state.n_threads)
            except RuntimeError as error:
                raise StoreError(
                    f"The model in {self.path} is damaged: {error}. Restore the store from a "
                    "backup."
                ) from error

    def _verify_receipts(self, state: State) -> None:
        named = {state.number_written: state.hash_written, state.number: state.last_hash}
        found: dict[int, str] = {}

        def with_hashes() -> Iterator[Receipt]:
            for receipt in self.receipts():
                if receipt.number in named:
                    found[receipt.number] = receipt.hash
                yield receipt

        problem = find_break(with_hashes())
        if problem is None and found.get(state.number) != state.last_hash:
            problem = f"receipt {state.number} does not match the last change"
        if problem is None and found != named:
            problem = f"receipt {state.number_written} does not match the model"
        if problem is not None:
            raise StoreError(
                f"The chain of receipts in {self.path} is broken: {problem}. Restore the store "
                "from a backup."
            )

    def _verify_files(self, state: State) -> None:
        try:
            file_format.load(state.model_path, links=False).verify()
        except FileNotFoundError:
            raise StoreError(
                f"{state.model_path} was replaced by a writer. Open the store again to verify the "
                "new model."
            ) from None
        journal, last = Journal(state.journal.path), state.number_written
        for found in journal.read():
            last = Record.restore(found).receipt.number
        if last < state.number:
            raise InvalidFileError(
                f"Change {last + 1} of {self.path} was made, but is lost. {journal.flaw}"
            )
