"""The lock of a store: one writer at a time, and a mark for interrupted writes."""

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

# The file begins with one of these, followed by the writer's process id. The mark need not survive
# a power cut, after which the files are what the disk holds, so it is never flushed.
SETTLED, WRITING = b"settled\n", b"writing\n"
MOST_BYTES = 100  # read at most this much of the writer's name


class StoreLockedError(RuntimeError):
    """Another process has the store open for writing."""


class Lock:
    """The lock that a writer holds. The system releases it when the process ends.

    Parameters
    ----------
    path : Path
        The lock file. It is never removed, and names the current or last writer.

    Attributes
    ----------
    is_unsettled : bool
        Whether this writer or the previous one was interrupted while writing, or the disk reported
        a failure. The content of the files may then not be on the disk.
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
                f"{path.parent} is not writable ({error.strerror}). Open the store with "
                "read_only=True, or change its permissions."
            ) from error
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            name = os.pread(self._number, MOST_BYTES, len(SETTLED))
            holder = printable(name.decode(errors="replace").strip())
            os.close(self._number)
            self._number = -1
            raise StoreLockedError(
                f"{path.parent} is locked by {holder or 'another process'}. Wait until it has "
                "finished, or open the store with read_only=True."
            ) from None
        found = os.pread(self._number, len(SETTLED), 0)
        self.is_unsettled = bool(found) and found != SETTLED
        with contextlib.suppress(OSError):  # the store is usable on a full disk
            if not found:
                atomic_file.write(self._number, SETTLED, 0)
            name = f"process {os.getpid()}\n".encode()
            atomic_file.write(self._number, name, len(SETTLED))
            os.ftruncate(self._number, len(SETTLED) + len(name))

    @property
    def is_ours(self) -> bool:
        """Whether this process holds the lock; a forked child does not."""
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
        """Record that everything written is on the disk."""
        # If this fails, the next writer only copies files unnecessarily.
        with contextlib.suppress(OSError):
            atomic_file.write(self._number, SETTLED, 0)
            self.is_unsettled = False

    def release(self) -> None:
        """Release the lock."""
        if self._number >= 0:
            if self.is_ours:
                fcntl.flock(self._number, fcntl.LOCK_UN)
            os.close(self._number)
            self._number = -1

    def __del__(self) -> None:
        self.release()
