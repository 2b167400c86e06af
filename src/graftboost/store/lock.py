"""One writer at a time, and a mark for the next one if what it wrote may not be on the disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from graftboost.persistence import atomic_file
from graftboost.persistence.file_format import open_regular
from graftboost.store.printable import printable

# What the file begins with, and the writer's name follows. The mark need not survive a power cut,
# after which the files are what the disk holds; so it is never flushed, and costs next to nothing.
SETTLED, WRITING = b"settled\n", b"writing\n"
MOST_BYTES = 100  # of the writer's name that are read


class StoreLockedError(RuntimeError):
    """Somebody else writes to the store."""


class Lock:
    """What a writer holds. The system lets go of it when its process ends, however it does.

    Parameters
    ----------
    path : Path
        The file that stands for the lock. It stays there, and says whose the lock is or was.

    Attributes
    ----------
    is_unsettled : bool
        Whether this writer or the one before has stopped in the middle of writing, or was told by
        the disk that it failed. Then what the files seem to hold may not be on the disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = -1
        self._owner = os.getpid()
        try:
            self._number = open_regular(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            raise PermissionError(
                f"{path.parent} may not be written to ({error.strerror}). Open the store with "
                "read_only=True, or have its permissions changed."
            ) from error
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            name = os.pread(self._number, MOST_BYTES, len(SETTLED))
            holder = printable(name.decode(errors="replace").strip())
            os.close(self._number)
            self._number = -1
            raise StoreLockedError(
                f"{path.parent} is being written to by {holder or 'another process'}. Wait until "
                "it is done, or open the store with read_only=True."
            ) from None
        found = os.pread(self._number, len(SETTLED), 0)
        self.is_unsettled = bool(found) and found != SETTLED
        with contextlib.suppress(OSError):  # a full disk is no reason not to read
            if not found:
                atomic_file.write(self._number, SETTLED, 0)
            name = f"process {os.getpid()}\n".encode()
            atomic_file.write(self._number, name, len(SETTLED))
            os.ftruncate(self._number, len(SETTLED) + len(name))

    @property
    def is_ours(self) -> bool:
        """Whether this process holds the lock; a child that was forked does not."""
        return self._number >= 0 and os.getpid() == self._owner

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Mark the store as unsettled until the block ends; raises OSError if that fails.

        The mark stays if the block raises `atomic_file.UncertainError` or the process ends within
        it. After any other error the block must have undone its writes.
        """
        if not self.is_unsettled:
            atomic_file.write(self._number, WRITING, 0)
            self.is_unsettled = True
        try:
            yield
        except atomic_file.UncertainError:
            raise
        except BaseException:
            self.settle()
            raise
        self.settle()

    def settle(self) -> None:
        """Say that all that was written is on the disk."""
        # A mark that stays makes the next writer copy files, for nothing.
        with contextlib.suppress(OSError):
            atomic_file.write(self._number, SETTLED, 0)
            self.is_unsettled = False

    def release(self) -> None:
        """Let go of it."""
        if self._number >= 0:
            if self.is_ours:
                fcntl.flock(self._number, fcntl.LOCK_UN)
            os.close(self._number)
            self._number = -1

    def __del__(self) -> None:
        self.release()
