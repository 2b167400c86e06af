"""One writer at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from graftboost.container import open_regular
from graftboost.printable import printable


class StoreLockedError(RuntimeError):
    """Somebody else writes to the store."""


class Lock:
    """What a writer holds. The system lets go of it when its process ends, however it does.

    Parameters
    ----------
    path : Path
        The file that stands for the lock. It stays there, and says whose the lock is or was.
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
            written = os.pread(self._number, 100, 0).decode(errors="replace")
            holder = printable(written.strip())
            os.close(self._number)
            self._number = -1
            raise StoreLockedError(
                f"{path.parent} is being written to by {holder or 'another process'}. Wait until "
                "it is done, or open the store with read_only=True."
            ) from None
        with contextlib.suppress(OSError):  # a full disk is no reason not to read
            os.ftruncate(self._number, 0)
            os.pwrite(self._number, f"process {os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go of it."""
        if self._number >= 0:
            if os.getpid() == self._owner:  # a child that was forked has the file, not the lock
                fcntl.flock(self._number, fcntl.LOCK_UN)
            os.close(self._number)
            self._number = -1

    def __del__(self) -> None:
        self.release()
