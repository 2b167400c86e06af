"""A store: a model in a directory, the changes since it was written, and their receipts."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store.changing import StoreChanges
from graftboost.store.creation import check_free, first_state, write_files
from graftboost.store.digest import digest
from graftboost.store.errors import OutcomeUnknownError, StoreError
from graftboost.store.loading import load_state, remove_left_overs
from graftboost.store.lock import Lock
from graftboost.store.recovery import secure
from graftboost.store.state import State, newest_generation

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

LOCK = "lock"

# The store is compacted after this many changes, or earlier if replaying them would take longer
# than writing the model at this many bytes per second.
COMPACT_EVERY = 100
BYTES_PER_SECOND = 2.5e8


class Store(StoreChanges):
    """A model that is kept in a directory.

    A call that changes the model returns when the change is on the disk. After a crash at any
    point, `open` restores the model as of the last call that returned, or of the call that was
    running. A call that raises has changed nothing, with one exception: `OutcomeUnknownError` means
    that the disk failed to write the change and also failed to undo it. The store is then closed,
    and opening it again shows whether the change was made.

    Make a store with `Store.create` or `Store.open`. Close it after use, or use it in a ``with``
    block.

    A store belongs to the process that opened it. A forked child may read the state at the time of
    the fork. To change the store, the child must open it itself.

    The parameters that updates read (`fidelity`, `memory_floor`, `update_rule`, `tolerance`,
    `stats_memory`, `n_jobs`) are those of the estimator `Store.model` and can be set there with
    ``set_params``. `add`, `remove`, `update`, `refit` and `refresh` use their current values and
    record them with the change, so they are kept when the store is compacted or opened again. A
    value that was set after the last change is lost when the store is closed.

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
        self._thread_lock = threading.RLock()
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
        """Create a store from a model.

        Parameters
        ----------
        path : path
            A directory that does not exist yet or is empty. It is created for its owner alone (mode
            0700), and so are the files in it (mode 0600), whatever the umask is.
        model : GraftBoostClassifier or GraftBoostRegressor
            A fitted model that is updatable. It is copied.
        attributes : mapping of str to array-like, default=None
            Columns to keep beside the rows, such as the customer of each row: one value for each of
            the model's `row_ids_`, in that order. A data frame is accepted.
        notes : mapping, default=None
            Further information to keep; must be serialisable as JSON.
        request : str, default=None
            The id of this request in the receipt. Default: a new id.
        compact_every : int, default=100
            The number of changes after which the store is compacted at the latest.

        Returns
        -------
        Store
            The store, open for writing.

        Raises
        ------
        OutcomeUnknownError
            If the creation failed at a point where the store may exist, now or after a power cut.
            After any other error it does not exist.
        """
        model._check_updatable()
        model._validate_params()
        path = Path(path).resolve()
        check_free(path)
        with model._update_lock.lock:
            state, receipt = first_state(path, model, attributes, notes, request)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            store = cls(path, Lock(path / LOCK), compact_every)
            try:
                check_free(path)  # again, now that the lock keeps other writers out
                write_files(state, receipt)
                store._load()
            except BaseException as error:
                store.close()
                if isinstance(error, Exception) and newest_generation(path) is not None:
                    raise OutcomeUnknownError(
                        f"It is not certain that the store {path} was created ({error}). Check the "
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
            Whether to open the store for reading only. Any number of readers and one writer may
            have a store open. A reader has the model as it was when the reader opened the store.
        compact_every : int, default=100
            The number of changes after which the store is compacted at the latest.

        Returns
        -------
        Store
            The store.

        Raises
        ------
        FileNotFoundError
            If there is no store.
        StoreLockedError
            If another process has the store open for writing.
        InvalidFileError
            If one of its files is damaged, or a change that was made is lost.
        """
        path = Path(path).resolve()
        if newest_generation(path) is None:
            raise FileNotFoundError(
                f"There is no store in {path}. Create one with Store.create, or check the path."
            )
        lock = None if read_only else Lock(path / LOCK)
        store = cls(path, lock, compact_every)
        try:
            if lock is not None:
                secure(path, lock)
            store._load()
            if lock is not None and remove_left_overs(store._state):
                atomic_file.flush_directory(path)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Release the lock. The store can no longer be used afterwards."""
        with self._thread_lock:
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

    # --- state ------------------------------------------------------------------------------------

    @property
    def _state(self) -> State:
        state = self._held
        if state is None:
            raise StoreError(f"The store {self.path} is closed{self._why_closed}. Open it again.")
        return state

    def _writable(self) -> tuple[State, Lock]:
        state = self._state
        if self._lock is None:
            raise StoreError(
                f"The store {self.path} is open for reading. Open it with read_only=False."
            )
        if not self._lock.is_ours:
            raise StoreError(
                f"The store {self.path} was opened by the parent of this forked process. Open the "
                "store in this process to change it."
            )
        return state, self._lock

    def _load(self) -> None:
        state = load_state(self.path, self._lock)
        self._held = state
        if self._model is not None:
            # Callers who hold the estimator continue with the reloaded model.
            self._model._engine_model = state.saved.engine_model
            self._model._next_id = state.saved.next_id
            if state.saved.classes:
                self._model._classes = state.saved.classes

    def _reload(self) -> None:
        """Restore the state on the disk; if it cannot be read, the store is closed.

        The present state stays until then: a process that is forked meanwhile can use it.
        """
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

    @contextlib.contextmanager
    def _durably(self) -> Iterator[None]:
        state = self._state
        state.check_model()
        if digest(state.saved.engine_model) != state.digest:
            self._reload()
            raise StoreError(
                f"The model of {self.path} was changed through its estimator and not through the "
                "store. It has been reloaded from the disk. Use the store's own methods instead."
            )
        try:
            yield
        except atomic_file.UncertainError as error:
            raise self._outcome_unknown("It is not known if the change was made", error) from error
        except BaseException as error:
            # A ValueError of the engine means that it has changed nothing.
            if (
                not isinstance(error, ValueError)
                or digest(state.saved.engine_model) != state.digest
            ):
                self._reload()
            if isinstance(error, OSError):
                raise StoreError(
                    f"The change could not be written to {self.path} ({error}), and was not made. "
                    "The store is unchanged."
                ) from error
            raise

    def _outcome_unknown(self, what: str, error: Exception) -> OutcomeUnknownError:
        """Close the store, and return an error that says what is not known."""
        self.close()
        self._why_closed = ", because the disk failed and its content is not known"
        return OutcomeUnknownError(
            f"{what}: {error}. The store {self.path} is closed. Check the disk, then open the "
            "store again; its history shows whether the change was made."
        )

    def _after_fork(self) -> None:
        """Prepare the store for a forked child, which has neither the threads nor the lock.

        The lock's file is closed, so that the lock ends with the process that holds it.
        """
        self._thread_lock = threading.RLock()
        if self._lock is not None:
            self._lock.release()

    # --- compaction -------------------------------------------------------------------------------

    def compact(self) -> None:
        """Rewrite the files, so that they no longer contain any data of removed rows."""
        with self._thread_lock:
            state, lock = self._writable()
            try:
                if state.n_changes:
                    # Damaged data must not be written again with valid checksums.
                    file_format.load(state.model_path, links=False).verify()
                    self._rewrite(state, lock)
                remove_left_overs(self._state)
                atomic_file.flush_directory(self.path)
            except atomic_file.UncertainError as error:
                what = "The files were rewritten, but this may not be permanent; no change is lost"
                raise self._outcome_unknown(what, error) from error
            except OSError as error:
                raise StoreError(
                    f"The files of {self.path} could not be rewritten ({error}). No change is "
                    "lost, but they may still hold removed rows. Free some space, and compact "
                    "again."
                ) from error

    def _rewrite(self, state: State, lock: Lock) -> None:
        """Write the model to a new file and continue from that file."""
        try:
            with lock.writing():
                state.write(state.generation + 1, atomic_file.Permissions.of(state.model_path))
        except atomic_file.UncertainError:
            raise
        except BaseException:
            # If the new file is in place nevertheless, the next change must follow it.
            if newest_generation(self.path) != state.generation:
                self._reload()
            raise
        self._reload()

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
            # The change itself is on the disk, so its call must not raise.
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)


def _in_forked_child() -> None:
    for store in Store._all:
        store._after_fork()


os.register_at_fork(after_in_child=_in_forked_child)
