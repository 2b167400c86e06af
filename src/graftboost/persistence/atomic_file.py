"""Files that are complete or not there, and what is certain about them when a disk fails.

A function that returns has brought what it wrote to the disk: no power cut takes it away. One that
raises says how far it came: an ordinary `OSError` means that nothing has changed, and an
`UncertainError` that nobody can know.
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
    """A write failed and could not be undone: what is on the disk is not known."""


class NotRegularError(OSError):
    """A file is a link, a pipe, a device or a directory, where only a regular file is accepted."""


@dataclass(frozen=True)
class Permissions:
    """Who may read and write a file.

    Attributes
    ----------
    mode : int
        The permission bits.
    group : int or None
        The group; None for the one that a new file has anyway.
    """

    mode: int
    group: int | None = None

    @classmethod
    def of(cls, path: Path) -> Permissions:
        """The permissions of a file."""
        status = path.lstat()
        return cls(stat.S_IMODE(status.st_mode), status.st_gid)

    def give(self, number: int) -> None:
        """Give them to an open file; if it cannot have the group, the group has no access."""
        mode = self.mode
        if self.group is not None and os.fstat(number).st_gid != self.group:
            try:
                os.fchown(number, -1, self.group)
            except OSError:
                mode &= ~stat.S_IRWXG
        try:
            os.fchmod(number, mode)
        except OSError as error:
            # A file system that knows no permissions; whoever mounted it decided who may read.
            if error.errno not in (errno.EPERM, errno.ENOTSUP):
                raise


PRIVATE = Permissions(0o600)
PIECE = 1 << 20  # bytes that are copied at once


def open_regular(path: Path, flags: int = os.O_RDONLY, permissions: Permissions = PRIVATE) -> int:
    """Open a file that is a regular one, reached by no link; return its descriptor.

    Parameters
    ----------
    path : Path
        The file. Its directory may be reached through links.
    flags : int, default=os.O_RDONLY
        As for `os.open`.
    permissions : Permissions, default=PRIVATE
        What the file gets if it is created.

    Returns
    -------
    int
        The descriptor.

    Raises
    ------
    NotRegularError
        If it is something else. A pipe does not block.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if flags & os.O_CREAT:
            try:
                number = os.open(path, flags | os.O_EXCL, 0o600)
            except FileExistsError:
                flags &= ~os.O_CREAT
            else:
                permissions.give(number)
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
        f"{path} is {kind}, but only a regular file is read or written here. Find out who put it "
        "there, and put the file itself in its place."
    )


@contextlib.contextmanager
def replacing(path: Path, permissions: Permissions | None = None) -> Iterator[IO[bytes]]:
    """Give a file to write to, which takes the place of the one at `path` when it is complete.

    Parameters
    ----------
    path : Path
        Where it is to be. Without `permissions`, a link is followed.
    permissions : Permissions, default=None
        Who may use it. By default these are those of the file that is replaced, or else what the
        process gives any new file.

    Yields
    ------
    binary file
        Beside the path, under another name. It is gone again if writing fails.

    Raises
    ------
    UncertainError
        If the file may have taken its place, now or after a power cut, or may not have. After any
        other error it has not.
    """
    if permissions is None:
        path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory. Give the path of a file.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a file, but a device or the like. Give the path of a file.")
    if permissions is None and path.exists():
        permissions = Permissions.of(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    mode = 0o666 if permissions is None else 0o600
    number = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(number, "w+b") as file:
            if permissions is not None:
                permissions.give(number)
            yield file
            file.flush()
            flush(file.fileno())
            written = os.fstat(file.fileno())
        try:
            rename(temporary, path)
        except OSError as error:
            if _may_be_at(path, written):
                raise UncertainError(
                    f"{path} may hold what was written, or what was there before ({error})"
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
            f"{path} is written, but a power cut may bring back what was there before ({error})"
        ) from error


def _may_be_at(path: Path, file: os.stat_result) -> bool:
    """Tell whether a file may have a name: a rename that reports an error may have been done."""
    try:
        return os.path.samestat(path.lstat(), file)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def rewrite(path: Path, number: int) -> None:
    """Put a copy of an open file in its place, which is on the disk when this returns.

    After a failed fsync the system takes pages for written that are not on the disk, and another
    fsync does not write them. Overwriting them in place could destroy what is on the disk if the
    power fails meanwhile. A copy does neither.

    Parameters
    ----------
    path : Path
        The file's name.
    number : int
        Its descriptor.

    Raises
    ------
    OSError
        As `replacing` does. Whoever reads the file finds the same bytes in any case.
    """
    with replacing(path, Permissions.of(path)) as file:
        at = 0
        while piece := read(number, at, at + PIECE):
            file.write(piece)
            at += len(piece)


def append(
    path: Path, data: bytes | memoryview, at: int, permissions: Permissions = PRIVATE
) -> None:
    """Write to the end of a file, so that it is on the disk when this returns.

    Parameters
    ----------
    path : Path
        The file; created if it is missing and `at` is 0.
    data : bytes or memoryview
        What to write.
    at : int
        Where the file ends. What a crash has left after that place is cut off.
    permissions : Permissions, default=PRIVATE
        What the file gets if it is created.

    Raises
    ------
    UncertainError
        If this failed and could not be undone. After any other error the file ends at `at`, also
        after a power cut.
    """
    number = open_regular(path, os.O_RDWR | (os.O_CREAT if at == 0 else 0), permissions)
    try:
        size = os.fstat(number).st_size
        if size < at:
            raise OSError(f"{path} has {size} bytes, but had {at}: somebody has cut it short")
        if size > at:
            os.ftruncate(number, at)
        try:
            write(number, data, at)
            flush(number)
            if at == 0:  # its name may be new
                flush_directory(path.parent)
        except BaseException as error:
            _undo(number, path, at, error)
            raise
    finally:
        os.close(number)


def cut(path: Path, at: int) -> None:
    """Have a file end at a place, if it goes on after it, also after a power cut.

    Raises
    ------
    UncertainError
        If that failed, in whichever way.
    """
    try:
        number = open_regular(path, os.O_RDWR)
    except (FileNotFoundError, NotRegularError):  # never written to, then
        return
    except OSError as error:
        raise _uncertain(path, error) from error
    try:
        if os.fstat(number).st_size > at:
            _undo(number, path, at, None)
    finally:
        os.close(number)


def _undo(number: int, path: Path, at: int, cause: BaseException | None) -> None:
    # Cutting a file short changes its length once more, so this fsync does not just repeat one that
    # failed: if it succeeds, the shorter length is on the disk.
    try:
        os.ftruncate(number, at)
        flush(number)
    except BaseException as error:
        raise _uncertain(path, error) from cause or error


def _uncertain(path: Path, error: BaseException) -> UncertainError:
    return UncertainError(f"{path} could not be written, nor cut back to what it held ({error})")


def read(number: int, begin: int, end: int) -> bytes:
    """Return the bytes of an open file between two places, or fewer if it is shorter."""
    pieces = []
    while begin < end and (piece := os.pread(number, end - begin, begin)):
        pieces.append(piece)
        begin += len(piece)
    return b"".join(pieces)


def write(number: int, data: bytes | memoryview, at: int) -> None:
    """Write all of some bytes to an open file, from a place on."""
    view = memoryview(data)
    while view:
        written = os.pwrite(number, view, at)
        view, at = view[written:], at + written


def flush(number: int) -> None:
    """Have what was written to an open file reach the disk."""
    os.fsync(number)


def rename(old: Path, new: Path) -> None:
    """Give a file another name, in place of a file that has it."""
    old.replace(new)


def flush_directory(directory: Path) -> None:
    """Have the names in a directory reach the disk."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove(path: Path) -> None:
    """Take a file away, if it is there."""
    path.unlink(missing_ok=True)
