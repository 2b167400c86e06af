"""The store itself: a model, the changes since it was written, and their receipts."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost import container, disk
from graftboost.changes import Change
from graftboost.container import InvalidFileError
from graftboost.report import UpdateReport
from graftboost.row_ids import NO_IDS, ids_to_remove
from graftboost.store.attributes import Attributes
from graftboost.store.conditions import where
from graftboost.store.digest import digest
from graftboost.store.journal import Journal
from graftboost.store.lock import Lock
from graftboost.store.receipts import FIRST, Receipt, as_ranges, find_break, read_lines
from graftboost.store.records import Record
from graftboost.store.state import State, StoreError, newest_generation

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

RECEIPTS = "receipts.jsonl"
LOCK = "lock"
# What writers leave behind that are stopped, or have written something newer.
LEFT_OVER = re.compile(r"lock|receipts\.jsonl|\..*\.tmp")
OURS = re.compile(r"\.?(model|journal)-\d{6,}\.graft(\..*\.tmp)?|\.receipts\.jsonl\..*\.tmp")

# The model is written anew after so many changes, or earlier if doing them again takes longer than
# to write it at so many bytes a second.
COMPACT_EVERY = 100
BYTES_PER_SECOND = 2.5e8
# A reader starts again if a writer has tidied up meanwhile; so often.
READ_TRIES = 20


class Store:
    """A model that lives in a directory.

    A call that changes the model returns when the change is on the disk. After a crash at any
    point, `open` gives the model as of the last call that returned, or of the one under way.

    Make one with `Store.create` or `Store.open`, and close it, or use it in a ``with`` block.

    Examples
    --------
    >>> import tempfile
    >>> from graftboost import GraftBoostClassifier
    >>> from graftboost.store import Store
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GraftBoostClassifier(n_estimators=20).fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.create(f"{folder.name}/cells", model) as store:
    ...     report = store.remove([17, 4])
    >>> with Store.open(f"{folder.name}/cells") as store:
    ...     store.n_rows, store.history()[-1].removed
    (567, [[4, 5], [17, 18]])
    """

    def __init__(self, path: Path, lock: Lock | None, compact_every: int) -> None:
        self.path = path
        self._lock = lock
        self._compact_every = compact_every
        self._turn = threading.RLock()
        self._model: GraftBoostClassifier | GraftBoostRegressor | None = None
        self._held: State | None = None

    # --- opening and closing ----------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        model: GraftBoostClassifier | GraftBoostRegressor,
        *,
        attributes: Mapping[str, Any] | None = None,
        notes: Mapping[str, Any] | None = None,
        request: str | None = None,
        compact_every: int = COMPACT_EVERY,
    ) -> Store:
        """Make a store of a model.

        Parameters
        ----------
        path : path
            A directory that is not there yet, or is empty.
        model : GraftBoostClassifier or GraftBoostRegressor
            A fitted model that is updatable. It is copied.
        attributes : mapping of str to array-like, default=None
            Columns to keep beside the rows, such as whose they are: a value for each of the model's
            `row_ids_`, in that order. A data frame will do.
        notes : mapping, default=None
            What else to remember, as far as JSON can hold it.
        request : str, default=None
            What the receipt calls this; a new name if not given.
        compact_every : int, default=100
            After how many changes, at most, the model is written anew.

        Returns
        -------
        Store
            The store, open for writing.
        """
        model._check_updatable()
        path = Path(path).resolve()
        _check_free(path)
        with model._turn.lock:
            saved = model._saved()
            ids = saved.forest.row_ids
            kept = Attributes([] if attributes is None else [str(name) for name in attributes])
            if attributes is not None:
                kept.add(ids, kept.check(attributes, len(ids)))
            receipt = Receipt(
                number=0,
                request=request or _new_request(),
                time=_now(),
                action="create",
                removed=[],
                added=as_ranges(ids),
                before="",
                after=digest(saved.forest),
                strategy="refit",
                nodes_retrained=0,
                rows_retrained=0,
                edges="",
                previous=FIRST,
            ).sealed()
            known = json.loads(json.dumps(notes or {}))
            state = State(path, 0, saved, kept, NO_IDS, known, 0, receipt.hash, receipt.after)
            path.mkdir(parents=True, exist_ok=True)
            lock = Lock(path / LOCK)
            store = cls(path, lock, compact_every)
            try:
                _check_free(path)  # now that nobody else can make one there
                # The model comes last: a directory without one is no store yet.
                with disk.replacing(path / RECEIPTS) as file:
                    file.write(receipt.to_line())
                state.write(1)
                disk.flush_directory(path.parent)
                store._load()
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        compact_every: int = COMPACT_EVERY,
    ) -> Store:
        """Open a store.

        Parameters
        ----------
        path : path
            Its directory.
        read_only : bool, default=False
            Whether to leave the writing to others. Any number of readers may have it open, and one
            writer; a reader has the model as it was when it opened the store.
        compact_every : int, default=100
            After how many changes, at most, the model is written anew.

        Returns
        -------
        Store
            The store.

        Raises
        ------
        FileNotFoundError
            If there is no store.
        StoreLockedError
            If somebody else writes to it.
        InvalidFileError
            If one of its files is damaged.
        """
        path = Path(path).resolve()
        if newest_generation(path) is None:
            raise FileNotFoundError(
                f"There is no store in {path}. Make one with Store.create, or check the path."
            )
        lock = None if read_only else Lock(path / LOCK)
        store = cls(path, lock, compact_every)
        try:
            store._load()
            if lock is not None:
                store._tidy_up()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Let others write. The store is not to be used any more."""
        with self._turn:
            self._held = self._model = None
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._held is None else "read-only" if self._lock is None else "open"
        return f"<Store {str(self.path)!r}, {state}>"

    # --- changes ----------------------------------------------------------------------------------

    def add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        attributes: Mapping[str, Any] | None = None,
        request: str | None = None,
    ) -> UpdateReport:
        """Add rows, as the estimator's `add` does.

        Parameters
        ----------
        X, y, sample_weight, row_ids
            The rows, as the estimator's `add` takes them.
        attributes : mapping of str to array-like, default=None
            A value a row for each column that is kept beside the rows.
        request : str, default=None
            What the receipt calls this; a new name if not given.

        Returns
        -------
        UpdateReport
            What was done.
        """
        if X is None:
            raise ValueError("X is None. Pass the features of the rows to add.")
        return self.update(
            X, y, sample_weight, row_ids=row_ids, attributes=attributes, request=request
        )

    def remove(self, row_ids: ArrayLike | slice, *, request: str | None = None) -> UpdateReport:
        """Remove rows, as the estimator's `remove` does.

        Parameters
        ----------
        row_ids : int, array-like of int or bool, or slice
            Which rows; `find` gives the ids of those with certain attributes.
        request : str, default=None
            What the receipt calls this; a new name if not given.

        Returns
        -------
        UpdateReport
            What was done.
        """
        if row_ids is None:
            raise ValueError("row_ids is None. Pass ids, a mask over row_ids, or a slice of ids.")
        with self._turn:
            state = self._writable()
            change = state.removal(ids_to_remove(state.saved.forest, row_ids, "row_ids"))
            return self._commit_update(change, {}, "row_ids", request)

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
    ) -> UpdateReport:
        """Add and remove rows in one pass, as the estimator's `update` does.

        Parameters
        ----------
        X, y, sample_weight, row_ids, remove
            The rows, as the estimator's `update` takes them.
        attributes : mapping of str to array-like, default=None
            A value a row for each column that is kept beside the rows.
        request : str, default=None
            What the receipt calls this; a new name if not given.

        Returns
        -------
        UpdateReport
            What was done.
        """
        with self._turn:
            state = self._writable()
            start = time.perf_counter()
            change = self.model._read_change(X, y, sample_weight, row_ids, remove, "remove")
            kept: dict[str, NDArray[Any]] = {}
            if change.added is not None:
                kept = state.attributes.check(attributes, len(change.added.ids))
            elif attributes is not None:
                raise ValueError("attributes is given without X. Pass both, or neither.")
            return self._commit_update(change, kept, "remove", request, start)

    def refit(self, *, request: str | None = None) -> None:
        """Train all trees again from the rows held, as the estimator's `refit` does.

        Parameters
        ----------
        request : str, default=None
            What the receipt calls this; a new name if not given.
        """
        self._commit_training("refit", request)

    def refresh(self, *, request: str | None = None) -> None:
        """Bring leaf values up to date, as the estimator's `refresh` does.

        Parameters
        ----------
        request : str, default=None
            What the receipt calls this; a new name if not given.
        """
        self._commit_training("refresh", request)

    def _commit_update(
        self,
        change: Change,
        attributes: Mapping[str, NDArray[Any]],
        argument: str,
        request: str | None,
        start: float | None = None,
    ) -> UpdateReport:
        state = self._writable()
        if change.is_empty:
            return change.apply(state.saved.forest, 1, argument=argument, start=start)
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
                nodes_retrained=report.nodes_retrained,
                rows_retrained=report.rows_retrained,
                edges=edges,
            )
            state.append(Record(receipt, change, attributes, report.seconds["total"]))
        self._compact_if_due()
        return report

    def _commit_training(self, action: str, request: str | None) -> None:
        with self._turn:
            state = self._writable()
            start = time.perf_counter()
            with self._durably():
                state.train(action)
                strategy = "refit" if action == "refit" else "in-place"
                receipt = self._receipt(request, action, strategy=strategy)
                state.append(Record(receipt, seconds=time.perf_counter() - start))
            self._compact_if_due()

    def _receipt(
        self,
        request: str | None,
        action: str,
        *,
        strategy: str,
        removed: list[list[int]] | None = None,
        added: list[list[int]] | None = None,
        nodes_retrained: int = 0,
        rows_retrained: int = 0,
        edges: str = "",
    ) -> Receipt:
        """Return the receipt of a change that was made to the model, but not yet written."""
        state = self._state
        return Receipt(
            state.next_number,
            request or _new_request(),
            _now(),
            action,
            removed or [],
            added or [],
            state.digest,
            digest(state.saved.forest),
            strategy,
            nodes_retrained,
            rows_retrained,
            edges,
            state.last_hash,
        ).sealed()

    @contextlib.contextmanager
    def _durably(self) -> Iterator[None]:
        """If what was done cannot be written down, go back to what is written."""
        state = self._state
        if digest(state.saved.forest) != state.digest:
            self._read_again()
            raise StoreError(
                f"The model of {self.path} was changed without the store, by its estimator. It has "
                "been read from the disk again. Change it by the store's own methods."
            )
        try:
            yield
        except BaseException as error:
            # What the engine refuses has changed nothing.
            if not isinstance(error, ValueError) or digest(state.saved.forest) != state.digest:
                self._read_again()
            if isinstance(error, OSError):
                raise StoreError(
                    f"The change could not be written to {self.path} ({error}), and was not made. "
                    "The store is as it was."
                ) from error
            raise

    # --- looking ----------------------------------------------------------------------------------

    @property
    def model(self) -> GraftBoostClassifier | GraftBoostRegressor:
        """The estimator that the store holds, for reading: what changes it is not written down."""
        model = self._model
        if model is not None:  # predictions do not wait for changes
            return model
        with self._turn:
            if self._model is None:
                from graftboost.estimators import restored

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
        with self._turn:
            kept = self._state.attributes
            ids = kept.ids if kept else self.row_ids
            return ids[where(condition, {"row_id": ids, **kept.columns})]

    def history(self) -> list[Receipt]:
        """Return the receipts of all changes, from the first to the last."""
        with self._turn:
            state = self._state
            # The file may be ahead of the journal, and of a reader whom the writer has left behind.
            written = [r for r in self._written_receipts() if r.number < state.next_number]
            last = written[-1].number if written else -1
            return [*written, *(r for r in state.recent if r.number > last)]

    def receipt(self, request: str | int) -> Receipt:
        """Return the receipt of a request, by its name or by the number of the change."""
        receipts = self.history()
        for receipt in receipts:
            if receipt.request == request:
                return receipt
        for receipt in receipts:
            if str(receipt.number) == str(request):
                return receipt
        raise KeyError(f"There is no receipt of {request!r}. history() has all there are.")

    def refitted_since(self, receipt: Receipt) -> bool:
        """Tell whether all trees were trained again by a change or after it.

        Then they are those of a model that was trained with these bins, and for as many iterations,
        on rows among which those that it removed never were.
        """
        return any(
            later.strategy == "refit" and later.number >= receipt.number for later in self.history()
        )

    def verify(self) -> None:
        """Check everything: the chain of receipts, all checksums, and every sum in the model.

        Raises
        ------
        StoreError or InvalidFileError
            If something is not as it should be.
        """
        with self._turn:
            state, receipts = self._state, self.history()
            known = {receipt.number: receipt.hash for receipt in receipts}
            problem = find_break(receipts)
            if problem is None and known.get(state.next_number - 1) != state.last_hash:
                problem = f"receipt {state.next_number - 1} is not that of the last change"
            if problem is None and known.get(state.number_written) != state.hash_written:
                problem = f"receipt {state.number_written} is not the one that the model names"
            if problem is not None:
                raise StoreError(f"The chain of receipts in {self.path} is broken: {problem}.")
            try:
                container.load(state.model_path).verify()
            except FileNotFoundError:
                raise StoreError(
                    f"{state.model_path} is gone: a writer has written a newer one. Open the store "
                    "again to verify that."
                ) from None
            for found in Journal(state.journal.path).read():
                Record.restore(found)
            if digest(state.saved.forest) != state.digest:
                raise StoreError(f"The model in {self.path} is not the one of its last receipt.")
            try:
                state.saved.forest.check_state(state.n_threads)
            except RuntimeError as error:
                raise StoreError(f"The model in {self.path} is damaged: {error}") from error

    # --- files ------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write the model anew, so that no file holds anything of removed rows any more."""
        with self._turn:
            state = self._writable()
            try:
                if state.recent:
                    # What is damaged is not written again with checksums that are right.
                    container.load(state.model_path).verify()
                    self._write_receipts()
                    try:
                        state.write(state.generation + 1)
                    finally:
                        # From the new file, if there is one: the old one's pages, with what was
                        # removed, go with it.
                        self._read_again()
                self._tidy_up()
            except OSError as error:
                raise StoreError(
                    f"The files of {self.path} could not be written anew ({error}). Nothing is "
                    "lost, but they may still hold removed rows. Make room, and compact again."
                ) from error

    def _compact_if_due(self) -> None:
        state = self._state
        size = state.model_path.stat().st_size
        if len(state.recent) < self._compact_every and (
            state.seconds < 1 + size / BYTES_PER_SECOND
        ):
            return
        try:
            self.compact()
        except (StoreError, InvalidFileError) as error:  # the change itself is on the disk
            warnings.warn(str(error), RuntimeWarning, stacklevel=4)

    def _read_again(self) -> None:
        """Go back to what is on the disk; if that cannot be read, the store is closed."""
        self._held = None
        self._load()

    def _load(self) -> None:
        """Read the newest model and do the changes since then again."""
        for _ in range(READ_TRIES):
            generation = newest_generation(self.path)
            if generation is None:
                break
            with contextlib.suppress(FileNotFoundError):
                state = State.read(self.path, generation)
                if newest_generation(self.path) == generation:
                    self._hold(state)
                    return
        raise FileNotFoundError(f"The model in {self.path} is gone. Take it from a backup.")

    def _hold(self, state: State) -> None:
        self._held = state
        if self._model is not None:
            # Whoever has the estimator goes on with it.
            self._model._forest = state.saved.forest
            self._model._next_id = state.saved.next_id
            if state.saved.classes:
                self._model._classes = state.saved.classes

    def _written_receipts(self) -> list[Receipt]:
        path = self.path / RECEIPTS
        try:
            return read_lines(path.read_bytes(), self._state.number_written + 1)[0]
        except FileNotFoundError:
            raise StoreError(f"{path} is missing: the receipts before are lost.") from None
        except ValueError as error:
            raise InvalidFileError(f"{path} is damaged: {error}") from error

    def _write_receipts(self) -> None:
        """Take the receipts over from the journal, which is going to be removed."""
        path = self.path / RECEIPTS
        written, size = read_lines(path.read_bytes(), self._state.number_written + 1)
        last = written[-1].number if written else -1
        lines = b"".join(r.to_line() for r in self._state.recent if r.number > last)
        disk.append(path, lines, size)

    def _tidy_up(self) -> None:
        """Remove what writers before left behind, by design or because they were stopped."""
        keep = {self._state.model_path, self._state.journal.path}
        for path in self.path.iterdir():
            if path not in keep and OURS.fullmatch(path.name):
                disk.remove(path)
        disk.flush_directory(self.path)

    @property
    def _state(self) -> State:
        state = self._held
        if state is None:
            with self._turn:  # somebody may be reading it again
                state = self._held
        if state is None:
            raise StoreError(f"The store {self.path} is closed. Open it again.")
        return state

    def _writable(self) -> State:
        state = self._state
        if self._lock is None:
            raise StoreError(
                f"The store {self.path} is open for reading. Open it with read_only=False."
            )
        return state


def _check_free(path: Path) -> None:
    """Raise if something is in a directory that is not what a store leaves that was never made."""
    if not path.exists():
        return
    if path.is_dir() and all(LEFT_OVER.fullmatch(file.name) for file in path.iterdir()):
        return
    raise FileExistsError(
        f"{path} is there already, and not an empty directory. If it is a store, open it with "
        "Store.open; else choose another path."
    )


def _new_request() -> str:
    return uuid.uuid4().hex


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
