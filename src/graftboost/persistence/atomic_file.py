"""Atomic and durable writes, with a defined outcome when a disk fails.

When a function returns, its data is on the disk and survives a power cut. When it raises an
ordinary `OSError`, nothing has changed. When it raises an `UncertainError`, the outcome is not
known.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO


class UncertainError(OSError):
    """A write failed and could not be undone, so the content of the disk is not known."""


class NotRegularError(OSError):
    """A path is a link, a pipe, a device or a directory instead of a regular file."""


@dataclass(frozen=True)
class Permissions:
    """The permissions of a file.

    Attributes
    ----------
    mode : int
        The permission bits.
    group : int or None
        The group; None for the default group of new files.
    """

    mode: int
    group: int | None = None

    @classmethod
    def of(cls, path: Path) -> Permissions:
        """Return the permissions of a file."""
        status = path.lstat()
        return cls(stat.S_IMODE(status.st_mode), status.st_gid)

    def apply_to(self, number: int) -> None:
        """Apply them to an open file; if the group cannot be set, the group gets no access."""
        mode = self.mode
        if self.group is not None and os.fstat(number).st_gid != self.group:
            try:
                os.fchown(number, -1, self.group)
            except OSError:
                mode &= ~stat.S_IRWXG
        try:
            os.fchmod(number, mode)
        except OSError as error:
            # The file system does not support permissions; its mount options decide.
            if error.errno not in (errno.EPERM, errno.ENOTSUP):
                raise


PRIVATE = Permissions(0o600)
PIECE = 1 << 20  # bytes copied at once
TEMPORARY = ".tmp"  # ends the names of files that are not complete yet


def open_regular(path: Path, flags: int = os.O_RDONLY, permissions: Permissions = PRIVATE) -> int:
    """Open a regular file that is not a symbolic link; return its descriptor.

    Parameters
    ----------
    path : Path
        The file. Its directory may be a link.
    flags : int, default=os.O_RDONLY
        As for `os.open`.
    permissions : Permissions, default=PRIVATE
        The permissions of the file if it is created.

    Returns
    -------
    int
        The descriptor.

    Raises
    ------
    NotRegularError
        If it is not a regular file. Opening a pipe does not block.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if flags & os.O_CREAT:
            try:
                number = os.open(path, flags | os.O_EXCL, 0o600)
            except FileExistsError:
                flags &= ~os.O_CREAT
            else:
                permissions.apply_to(number)
                return number
        number = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _not_regular(path)
    return number


def _not_regular(path: Path) -> NotRegularError:
    kind = "a symbolic link" if path.is_symlink() else "a directory, a pipe or a device"
    return NotRegularError(
        f"{path} is {kind}, but must be a regular file. Find out who created it, and replace it by "
        "the file itself."
    )


@contextlib.contextmanager
def replacing(
    path: Path, permissions: Permissions | None = None, *, new: bool = False
) -> Iterator[IO[bytes]]:
    """Provide a temporary file that replaces `path` when it is complete.

    Parameters
    ----------
    path : Path
        The file to replace. Without `permissions`, a link is followed.
    permissions : Permissions, default=None
        The permissions of the file. Default: those of the file that is replaced, or else those of
        any new file.
    new : bool, default=False
        Whether there must not be such a file. Of several processes that create it, one succeeds.

    Yields
    ------
    binary file
        A file in the same directory. It is removed if writing fails.

    Raises
    ------
    FileExistsError
        If `new` is set and there is such a file.
    UncertainError
        If it is not known whether the file was replaced, now or after a power cut. After any other
        error it was not replaced.
    """
    if permissions is None:
        path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory. Pass the path of a file.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a device or another special file. Pass the path of a file.")
    if permissions is None and path.exists():
        permissions = Permissions.of(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{TEMPORARY}")
    mode = 0o666 if permissions is None else 0o600
    number = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(number, "w+b") as file:
            if permissions is not None:
                permissions.apply_to(number)
            yield file
            file.flush()
            flush(file.fileno())
            written = os.fstat(file.fileno())
        try:
            if new:
                _link(temporary, path)
            else:
                rename(temporary, path)
        except OSError as error:
            if _may_be_at(path, written):
                raise UncertainError(
                    f"{path} may have its new or its previous content ({error})"
                ) from error
            raise
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    try:
        flush_directory(path.parent)
    except OSError as error:
        raise UncertainError(
            f"{path} is written, but a power cut may restore its previous content ({error})"
        ) from error


def _link(temporary: Path, path: Path) -> None:
    """Rename a file, unless there is one with the new name."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        # The file system has no links. Between these two steps another process might succeed.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        rename(temporary, path)
        return
    with contextlib.suppress(OSError):  # removed with other left-overs later
        temporary.unlink()


def is_temporary(path: Path) -> bool:
    """Tell whether a file is one that `replacing` provides, or left behind in a crash."""
    return path.name.startswith(".") and path.name.endswith(TEMPORARY)


def _may_be_at(path: Path, file: os.stat_result) -> bool:
    """Tell whether a file may be at a path; a rename that reports an error may have been done."""
    try:
        return os.path.samestat(path.lstat(), file)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def rewrite(path: Path, number: int) -> None:
    """Replace an open file by a copy of itself that is flushed to the disk.

    After a failed fsync the system may regard pages as written that are not on the disk, and
    another fsync does not write them. Overwriting them in place could destroy data if the power
    fails meanwhile. A copy avoids both problems.

    Parameters
    ----------
    path : Path
        The file's name.
    number : int
        Its descriptor.

    Raises
    ------
    OSError
        As `replacing` does. Readers of the file find the same bytes in any case.
    """
    with replacing(path, Permissions.of(path)) as file:
        at = 0
        while piece := read(number, at, at + PIECE):
            file.write(piece)
            at += len(piece)


def append(
    path: Path, data: bytes | memoryview, at: int, permissions: Permissions = PRIVATE
) -> None:
    """Append to a file and flush it to the disk.

    Parameters
    ----------
    path : Path
        The file; created if it is missing and `at` is 0.
    data : bytes or memoryview
        The bytes to write.
    at : int
        The end of the valid content. Anything after it, left by a crash, is removed.
    permissions : Permissions, default=PRIVATE
        The permissions of the file if it is created.

    Raises
    ------
    UncertainError
        If the write failed and could not be undone. After any other error the file ends at `at`,
        also after a power cut.
    """
    number = open_regular(path, os.O_RDWR | (os.O_CREAT if at == 0 else 0), permissions)
    try:
        size = os.fstat(number).st_size
        if size < at:
            raise OSError(
                f"{path} has {size} bytes instead of {at}: another process has truncated it. "
                "Restore it from a backup."
            )
        if size > at:
            os.ftruncate(number, at)
        try:
            write(number, data, at)
            flush(number)
            if at == 0:  # the file may be new
                flush_directory(path.parent)
        except BaseException as error:
            _undo(number, path, at, error)
            raise
    finally:
        os.close(number)


def cut(path: Path, at: int) -> None:
    """Truncate a file that is longer than `at`, and flush it to the disk.

    Raises
    ------
    UncertainError
        If truncating the file failed.
    """
    try:
        number = open_regular(path, os.O_RDWR)
    except (FileNotFoundError, NotRegularError):  # nothing was written to it
        return
    except OSError as error:
        raise _uncertain(path, error) from error
    try:
        if os.fstat(number).st_size > at:
            _undo(number, path, at, None)
    finally:
        os.close(number)


def _undo(number: int, path: Path, at: int, cause: BaseException | None) -> None:
    # Truncating changes the length again, so this fsync does not only repeat one that failed: if it
    # succeeds, the shorter length is on the disk.
    try:
        os.ftruncate(number, at)
        flush(number)
    except BaseException as error:
        raise _uncertain(path, error) from cause or error


def _uncertain(path: Path, error: BaseException) -> UncertainError:
    return UncertainError(
        f"{path} could not be written, and its previous length could not be restored ({error})"
    )


def read(number: int, begin: int, end: int) -> bytes:
    """Return the bytes of an open file between two offsets, or fewer if it is shorter."""
    pieces = []
    while begin < end and (piece := os.pread(number, end - begin, begin)):
        pieces.append(piece)
        begin += len(piece)
    return b"".join(pieces)


def write(number: int, data: bytes | memoryview, at: int) -> None:
    """Write bytes to an open file at an offset."""
    view = memoryview(data)
    while view:
        written = os.pwrite(number, view, at)
        view, at = view[written:], at + written


def flush(number: int) -> None:
    """Flush an open file to the disk."""
    os.fsync(number)


def rename(old: Path, new: Path) -> None:
    """Rename a file, replacing an existing one."""
    old.replace(new)


def flush_directory(directory: Path) -> None:
    """Flush a directory to the disk."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove(path: Path) -> None:
    """Remove a file if it exists."""
    path.unlink(missing_ok=True)
