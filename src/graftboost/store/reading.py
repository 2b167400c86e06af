"""What a store can be asked, without changing anything."""

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
from graftboost.store.journal import Journal
from graftboost.store.receipt_log import ReceiptLog
from graftboost.store.receipts import Receipt, find_break
from graftboost.store.records import Record
from graftboost.store.state import State, StoreError

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor


class StoreReading(ABC):
    """The model, the attributes and the receipts of a store; `Store` is what users have."""

    path: Path
    _thread_lock: threading.RLock
    _model: GraftBoostClassifier | GraftBoostRegressor | None

    @property
    @abstractmethod
    def _state(self) -> State:
        """What the store holds; raises StoreError if it is closed."""

    @property
    def model(self) -> GraftBoostClassifier | GraftBoostRegressor:
        """The estimator that the store holds.

        Rows that are added or removed by its own methods are not written to the store. The
        parameters that updates read, such as `tolerance`, may be set on it: see `Store`.
        """
        model = self._model
        if model is not None:  # predictions do not wait for changes
            return model
        with self._thread_lock:
            if self._model is None:
                from graftboost.estimators.loading import restored

                self._model = restored(self._state.saved, str(self.path))
            return self._model

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict, as the estimator does."""
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities, as a classifier does."""
        probabilities: NDArray[np.float64] = self._of_model("predict_proba")(X)
        return probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores, as a classifier does."""
        scores: NDArray[np.float64] = self._of_model("decision_function")(X)
        return scores

    def _of_model(self, name: str) -> Any:
        if not hasattr(self.model, name):
            raise AttributeError(f"The store holds a {type(self.model).__name__}, without {name}.")
        return getattr(self.model, name)

    @property
    def n_rows(self) -> int:
        """How many rows the model holds."""
        return self._state.saved.forest.n_rows

    @property
    def row_ids(self) -> NDArray[np.int64]:
        """Ids of the rows that the model holds."""
        return self._state.saved.forest.row_ids

    @property
    def n_trees(self) -> int:
        """How many trees the model has."""
        return self._state.saved.forest.n_trees

    @property
    def digest(self) -> str:
        """The fingerprint of the model."""
        return self._state.digest

    @property
    def notes(self) -> dict[str, Any]:
        """What the maker of the store wanted remembered."""
        return self._state.notes

    @property
    def attribute_names(self) -> list[str]:
        """Names of the columns that are kept beside the rows."""
        return list(self._state.attributes.columns)

    def is_text(self, attribute: str) -> bool:
        """Tell whether a column that is kept beside the rows holds text."""
        return bool(self._state.attributes.columns[attribute].dtype == object)

    def summary(self) -> dict[str, Any]:
        """Return what the store holds, in a few words and numbers."""
        saved = self._state.saved
        classes = saved.classes.get(saved.n_classes)
        return {
            "model": saved.estimator,
            "rows": saved.forest.n_rows,
            "features": saved.forest.bins.n_features,
            "classes": None if classes is None else [str(label) for label in classes],
            "trees": saved.forest.n_trees,
            "kept_beside_the_rows": self.attribute_names,
        }

    def find(self, condition: str) -> NDArray[np.int64]:
        """Return the ids of rows by their attributes.

        Parameters
        ----------
        condition : str
            What is to hold of them, such as ``customer == 17 and region in ("north", "west")``.
            "row_id" is the id itself.

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

        They are read one by one, so this takes little memory however many there are.
        """
        with self._thread_lock:
            state = self._state
            # As of now: neither is changed by what a writer adds meanwhile.
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
        """Return the receipt of a request, by its name or by the number of the change."""
        numbered = None
        for receipt in self.receipts():
            if receipt.request == request:
                return receipt
            if str(receipt.number) == str(request):
                numbered = receipt
        if numbered is None:
            raise KeyError(f"There is no receipt of {request!r}. history() has all there are.")
        return numbered

    def refitted_since(self, receipt: Receipt) -> bool:
        """Tell whether all trees were refitted by a change or after it.

        Then they are those of a model that was trained with these bins, and for as many iterations,
        on rows among which those that it removed never were.
        """
        return any(
            later.strategy == "refit" and later.number >= receipt.number
            for later in self.receipts()
        )

    def verify(self) -> None:
        """Check everything: the chain of receipts, all checksums, and every sum in the model.

        Raises
        ------
        StoreError or InvalidFileError
            If something is not as it should be.
        """
        with self._thread_lock:
            state = self._state
            self._verify_receipts(state)
            self._verify_files(state)
            state.check_model()
            if digest(state.saved.forest) != state.digest:
                raise StoreError(f"The model in {self.path} is not the one of its last receipt.")
            kept, held = state.attributes, state.saved.forest.row_ids
            if kept and not np.array_equal(np.sort(kept.ids), np.sort(held)):
                raise StoreError(f"The attributes in {self.path} are not those of its rows.")
            try:
                state.saved.forest.check_state(state.n_threads)
            except RuntimeError as error:
                raise StoreError(f"The model in {self.path} is damaged: {error}") from error

    def _verify_receipts(self, state: State) -> None:
        named = {state.number_written: state.hash_written, state.number: state.last_hash}
        found: dict[int, str] = {}

        def noted() -> Iterator[Receipt]:
            for receipt in self.receipts():
                if receipt.number in named:
                    found[receipt.number] = receipt.hash
                yield receipt

        problem = find_break(noted())
        if problem is None and found.get(state.number) != state.last_hash:
            problem = f"receipt {state.number} is not that of the last change"
        if problem is None and found != named:
            problem = f"receipt {state.number_written} is not the one that the model names"
        if problem is not None:
            raise StoreError(f"The chain of receipts in {self.path} is broken: {problem}.")

    def _verify_files(self, state: State) -> None:
        try:
            file_format.load(state.model_path, links=False).verify()
        except FileNotFoundError:
            raise StoreError(
                f"{state.model_path} is gone: a writer has written a newer one. Open the store "
                "again to verify that."
            ) from None
        journal, last = Journal(state.journal.path), state.number_written
        for found in journal.read():
            last = Record.restore(found).receipt.number
        if last < state.number:
            raise InvalidFileError(
                f"Change {last + 1} of {self.path} was made, but is lost. {journal.flaw}"
            )
