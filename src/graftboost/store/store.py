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
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from graftboost import container, disk
from graftboost.changes import UPDATE_PARAMETERS, Change
from graftboost.container import InvalidFileError
from graftboost.report import UpdateReport
from graftboost.row_ids import NO_IDS, ids_to_remove
from graftboost.store.attributes import Attributes
from graftboost.store.digest import digest
from graftboost.store.lock import Lock
from graftboost.store.receipt_log import NAME, ReceiptLog
from graftboost.store.receipts import FIRST, Receipt, as_ranges
from graftboost.store.records import Record
from graftboost.store.recovery import secure
from graftboost.store.state import OutcomeUnknownError, State, StoreError, newest_generation
from graftboost.store.view import StoreView
from graftboost.wiping import Copies

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

LOCK = "lock"
# What writers leave behind that are stopped, or have written something newer.
LEFT_OVER = re.compile(r"lock|receipts\.jsonl|\..*\.tmp")
OURS = re.compile(r"\.?(model|journal)-\d{6,18}\.graft(\..*\.tmp)?|\.receipts\.jsonl\..*\.tmp")

# The model is written anew after so many changes, or earlier if doing them again takes longer than
# to write it at so many bytes a second.
COMPACT_EVERY = 100
BYTES_PER_SECOND = 2.5e8
# A reader starts again if a writer has tidied up meanwhile; so often.
READ_TRIES = 20


class Store(StoreView):
    """A model that lives in a directory.

    A call that changes the model returns when the change is on the disk. After a crash at any
    point, `open` gives the model as of the last call that returned, or of the one under way. A call
    that raises has changed nothing, except that an `OutcomeUnknownError` says that nobody can know:
    the disk failed to write the change, and failed to undo that. The store is closed then, and
    opening it again tells.

    Make one with `Store.create` or `Store.open`, and close it, or use it in a ``with`` block.

    A store belongs to the process that opened it. A child that is forked may read what it held at
    that moment; to change the store, the child has to open it itself.

    The parameters that updates read (`tolerance_rule`, `tolerance`, `stats_memory`, `n_jobs`) are
    those of the estimator `Store.model`, and may be set there with ``set_params``. `add`, `remove`,
    `update`, `refit` and `refresh` all use them as they are when called, and write them down with
    the change: they are the same after compaction and after opening the store again. A setting that
    no change has followed is lost when the store is closed.

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

    _all: ClassVar[weakref.WeakSet[Store]] = weakref.WeakSet()

    def __init__(self, path: Path, lock: Lock | None, compact_every: int) -> None:
        self.path = path
        self._lock = lock
        self._compact_every = compact_every
        self._turn = threading.RLock()
        self._model: GraftBoostClassifier | GraftBoostRegressor | None = None
        self._held: State | None = None
        self._why_closed = ""
        Store._all.add(self)

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
            A directory that is not there yet, or is empty. It is made for its owner alone (mode
            0700), and the files in it, whatever the umask is (mode 0600).
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

        Raises
        ------
        OutcomeUnknownError
            If something failed when the store may have been made, so that it may be there, now or
            after a power cut, or may not. After any other error it is not.
        """
        model._check_updatable()
        model._validate_params()
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
                request=_request(request),
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
            line = receipt.to_line()
            log = ReceiptLog(path / NAME, 0, len(line))
            state = State(path, 0, saved, kept, NO_IDS, known, 0, receipt.hash, receipt.after, log)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            store = cls(path, Lock(path / LOCK), compact_every)
            try:
                _check_free(path)  # now that nobody else can make one there
                # The model comes last: a directory without one is no store yet.
                with disk.replacing(path / NAME, disk.PRIVATE) as file:
                    file.write(line)
                state.write(1, disk.PRIVATE)
                disk.flush_directory(path.parent)
                store._load()
            except BaseException as error:
                store.close()
                if isinstance(error, Exception) and newest_generation(path) is not None:
                    raise OutcomeUnknownError(
                        f"It is not certain that the store {path} was made ({error}). Check the "
                        "disk; then open the store, or remove the directory and create it again."
                    ) from error
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
            If one of its files is damaged, or a change that was made is lost.
        """
        path = Path(path).resolve()
        if newest_generation(path) is None:
            raise FileNotFoundError(
                f"There is no store in {path}. Make one with Store.create, or check the path."
            )
        lock = None if read_only else Lock(path / LOCK)
        store = cls(path, lock, compact_every)
        try:
            if lock is not None:
                secure(path, lock)
            store._load()
            if lock is not None and store._tidy_up():
                disk.flush_directory(path)
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
        with self._turn:
            report = self._update(X, y, sample_weight, row_ids, None, attributes, request)
            self._compact_if_due()
        return report

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
            state, _ = self._writable()
            if self._model is None:  # without it, nobody waits for scikit-learn
                change = state.removal(ids_to_remove(state.saved.forest, row_ids, "row_ids"))
            else:
                change = self._model._read_change(None, None, None, None, row_ids, "row_ids")
            report = self._commit_update(change, {}, "row_ids", request)
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
            report = self._update(X, y, sample_weight, row_ids, remove, attributes, request)
            self._compact_if_due()
        return report

    def refit(self, *, request: str | None = None) -> None:
        """Train all trees again from the rows held, as the estimator's `refit` does.

        Parameters
        ----------
        request : str, default=None
            What the receipt calls this; a new name if not given.
        """
        with self._turn:
            self._commit_training("refit", request)
            self._compact_if_due()

    def refresh(self, *, request: str | None = None) -> None:
        """Bring leaf values up to date, as the estimator's `refresh` does.

        Parameters
        ----------
        request : str, default=None
            What the receipt calls this; a new name if not given.
        """
        with self._turn:
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
    ) -> UpdateReport:
        state, _ = self._writable()
        start = time.perf_counter()
        with Copies() as copies:
            change = self.model._read_change(X, y, sample_weight, row_ids, remove, "remove", copies)
            kept: dict[str, NDArray[Any]] = {}
            if change.added is not None:
                kept = state.attributes.check(attributes, len(change.added.ids))
            elif attributes is not None:
                raise ValueError("attributes is given without X. Pass both, or neither.")
            return self._commit_update(change, kept, "remove", request, start)

    def _commit_update(
        self,
        change: Change,
        attributes: Mapping[str, NDArray[Any]],
        argument: str,
        request: str | None,
        start: float | None = None,
    ) -> UpdateReport:
        state, lock = self._writable()
        if change.is_empty:
            return change.apply(state.saved.forest, 1, argument=argument, start=start)
        request = _request(request)
        parameters = self._update_parameters(state)
        change = replace(change, rule=state.rule)
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
            seconds = report.seconds["total"]
            with lock.writing():
                state.commit(Record(receipt, parameters, change, attributes, seconds))
        return report

    def _commit_training(self, action: str, request: str | None) -> None:
        state, lock = self._writable()
        request = _request(request)
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
        """Return the parameters that updates read: the estimator's, where a user may set them."""
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
        nodes_retrained: int = 0,
        rows_retrained: int = 0,
        edges: str = "",
    ) -> Receipt:
        """Return the receipt of a change that was made to the model, but not yet written."""
        state = self._state
        return Receipt(
            state.number + 1,
            request,
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
        state.check_model()
        if digest(state.saved.forest) != state.digest:
            self._read_again()
            raise StoreError(
                f"The model of {self.path} was changed without the store, by its estimator. It has "
                "been read from the disk again. Change it by the store's own methods."
            )
        try:
            yield
        except disk.UncertainError as error:
            raise self._unknown("Whether the change was made is not known", error) from error
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

    def _unknown(self, what: str, error: Exception) -> OutcomeUnknownError:
        """Close the store, and return an error that says what nobody can know."""
        self.close()
        self._why_closed = ", because the disk failed and what it holds is not known"
        return OutcomeUnknownError(
            f"{what}: {error}. The store {self.path} is closed. Check the disk, then open the "
            "store again: its history tells."
        )

    # --- files ------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write the model anew, so that no file holds anything of removed rows any more."""
        with self._turn:
            state, lock = self._writable()
            try:
                if state.n_changes:
                    # What is damaged is not written again with checksums that are right.
                    container.load(state.model_path, links=False).verify()
                    self._write_anew(state, lock)
                self._tidy_up()
                disk.flush_directory(self.path)
            except disk.UncertainError as error:
                what = "The files were written anew, but may not stay so; no change is lost"
                raise self._unknown(what, error) from error
            except OSError as error:
                raise StoreError(
                    f"The files of {self.path} could not be written anew ({error}). Nothing is "
                    "lost, but they may still hold removed rows. Make room, and compact again."
                ) from error

    def _write_anew(self, state: State, lock: Lock) -> None:
        """Write the model, and go on from the new file: the old one's pages go with it."""
        try:
            with lock.writing():
                state.write(state.generation + 1, disk.Permissions.of(state.model_path))
        except disk.UncertainError:
            raise
        except BaseException:
            # The new file may be in its place all the same. Then the next change has to follow it.
            if newest_generation(self.path) != state.generation:
                self._read_again()
            raise
        self._read_again()

    def _compact_if_due(self) -> None:
        state = self._state
        try:
            size = state.model_path.stat().st_size
        except OSError:
            size = 0
        if state.n_changes < self._compact_every and state.seconds < 1 + size / BYTES_PER_SECOND:
            return
        try:
            self.compact()
        except (StoreError, InvalidFileError, MemoryError) as error:
            # The change itself is on the disk, so its call has to return.
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)

    def _read_again(self) -> None:
        """Go back to what is on the disk; if that cannot be read, the store is closed."""
        self._held = None
        try:
            self._load()
        except BaseException as error:
            self.close()
            self._why_closed = ", because its files could not be read again"
            if isinstance(error, OSError):
                raise StoreError(
                    f"The files of {self.path} could not be read again ({error}), and the store is "
                    "closed. It holds what it held before the call; open it again."
                ) from error
            raise

    def _load(self) -> None:
        """Read the newest model and do the changes since then again."""
        if self._lock is not None:
            # A writer may have been stopped before the names of its files were on the disk.
            disk.flush_directory(self.path)
        for _ in range(READ_TRIES):
            generation = newest_generation(self.path)
            if generation is None:
                break
            try:
                state = State.read(self.path, generation)
            except (FileNotFoundError, InvalidFileError):
                # A writer may have gone on to another model meanwhile, and taken this one away.
                if newest_generation(self.path) == generation:
                    raise
                continue
            if newest_generation(self.path) == generation:
                if self._lock is not None and state.unlogged:
                    with self._lock.writing():
                        state.log_missing()
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

    def _tidy_up(self) -> bool:
        """Remove what earlier writers left behind, by design or because they were stopped.

        Returns whether there was anything.
        """
        keep = {self._state.model_path, self._state.journal.path}
        left = [p for p in self.path.iterdir() if p not in keep and OURS.fullmatch(p.name)]
        for path in left:
            disk.remove(path)
        return bool(left)

    @property
    def _state(self) -> State:
        state = self._held
        if state is None:
            with self._turn:  # somebody may be reading it again
                state = self._held
        if state is None:
            raise StoreError(f"The store {self.path} is closed{self._why_closed}. Open it again.")
        return state

    def _writable(self) -> tuple[State, Lock]:
        """Return what is to be changed, and the lock that allows it."""
        state = self._state
        if self._lock is None:
            raise StoreError(
                f"The store {self.path} is open for reading. Open it with read_only=False."
            )
        if not self._lock.is_ours:
            raise StoreError(
                f"The store {self.path} was opened by another process, of which this one is a "
                "fork. Open the store in this process to change it."
            )
        return state, self._lock

    def _after_fork(self) -> None:
        """In a forked child: the thread that had the turn is not there, and the lock is not ours.

        The file of the lock is closed, so that the lock ends with the process that holds it.
        """
        self._turn = threading.RLock()
        if self._lock is not None:
            self._lock.release()


def _in_forked_child() -> None:
    for store in Store._all:
        store._after_fork()


os.register_at_fork(after_in_child=_in_forked_child)


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


def _request(request: Any) -> str:
    """Return what a caller calls a change, or a new name."""
    if request is not None and not isinstance(request, str):
        raise TypeError(
            f"request is of type {type(request).__name__}, but a receipt names it by text. Pass a "
            "str, or leave it out to have a new name."
        )
    return request or uuid.uuid4().hex


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
