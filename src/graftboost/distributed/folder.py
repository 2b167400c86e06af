"""Folders that survive the processes that write to them: on a disk, or in an object store."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.file_format import Container
from graftboost.persistence.pieces import Arrays


class Folder(Protocol):
    """Named files, each of which is written as a whole.

    When `write` or `create` returns, the file lasts. When they raise `UncertainError`, the file may
    have its new or its former content; after any other error it has its former content.
    """

    def write(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Write a file; an existing one is replaced."""
        ...

    def create(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Write a new file. Raises `FileExistsError` if there is one with this name."""
        ...

    def read(self, name: str) -> Container:
        """Return the content of a file."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        ...

    def inside(self, name: str) -> Folder:
        """Return a folder in this one."""
        ...

    def folders(self) -> list[str]:
        """Return the names of the folders in this one that have files, sorted."""
        ...

    def clear(self) -> None:
        """Remove everything in this folder, and the folder."""
        ...

    def remove_if_empty(self) -> None:
        """Remove this folder if there is nothing in it."""
        ...

    def remove_left_overs(self) -> None:
        """Remove what processes that ended while they wrote have left behind."""
        ...


class LocalFolder:
    """A folder of a disk, or of a network file system that all machines mount."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def write(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """See `Folder`."""
        self._write(name, header, arrays, new=False)

    def create(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """See `Folder`."""
        self._write(name, header, arrays, new=True)

    def _write(self, name: str, header: Mapping[str, Any], arrays: Arrays, *, new: bool) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        path = self.path / name
        with atomic_file.replacing(path, atomic_file.PRIVATE, new=new) as file:
            file_format.dump(file, header, arrays)

    def read(self, name: str) -> Container:
        """See `Folder`."""
        return file_format.load(self.path / name, links=False)

    def names(self) -> list[str]:
        """See `Folder`."""
        if not self.path.is_dir():
            return []
        return sorted(
            path.name
            for path in self.path.iterdir()
            if path.is_file() and not atomic_file.is_temporary(path)
        )

    def remove(self, name: str) -> None:
        """See `Folder`."""
        atomic_file.remove(self.path / name)
        with contextlib.suppress(FileNotFoundError):
            atomic_file.flush_directory(self.path)

    def inside(self, name: str) -> LocalFolder:
        """See `Folder`."""
        return LocalFolder(self.path / name)

    def folders(self) -> list[str]:
        """See `Folder`."""
        if not self.path.is_dir():
            return []
        return sorted(path.name for path in self.path.iterdir() if path.is_dir())

    def clear(self) -> None:
        """See `Folder`."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.path)

    def remove_if_empty(self) -> None:
        """See `Folder`."""
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def remove_left_overs(self) -> None:
        """See `Folder`."""
        if self.path.is_dir():
            for path in self.path.iterdir():
                if atomic_file.is_temporary(path):
                    atomic_file.remove(path)


class RemoteFolder:
    """A folder of an object store, through fsspec."""

    def __init__(self, file_system: Any, path: str) -> None:
        self.file_system = file_system
        self.path = path.rstrip("/")

    def __str__(self) -> str:
        return self.path

    def write(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """See `Folder`."""
        self._write(name, header, arrays, "overwrite")

    def create(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """See `Folder`."""
        self._write(name, header, arrays, "create")

    def _write(self, name: str, header: Mapping[str, Any], arrays: Arrays, mode: str) -> None:
        content = file_format.dumps(header, arrays)
        path = f"{self.path}/{name}"
        try:
            self.file_system.makedirs(self.path, exist_ok=True)
            self.file_system.pipe_file(path, content, mode=mode)
        except FileExistsError:
            raise
        except Exception as error:  # of the file system's own kind
            raise atomic_file.UncertainError(
                f"{path} may have its new or its previous content ({error})"
            ) from error

    def read(self, name: str) -> Container:
        """See `Folder`."""
        path = f"{self.path}/{name}"
        return file_format.loads(self.file_system.cat_file(path), path)

    def names(self) -> list[str]:
        """See `Folder`."""
        return self._entries("file")

    def _entries(self, kind: str) -> list[str]:
        self.file_system.invalidate_cache(self.path)
        try:
            found = self.file_system.ls(self.path, detail=True)
        except FileNotFoundError:
            return []
        return sorted(
            entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in found if entry["type"] == kind
        )

    def remove(self, name: str) -> None:
        """See `Folder`."""
        with contextlib.suppress(FileNotFoundError):
            self.file_system.rm_file(f"{self.path}/{name}")

    def inside(self, name: str) -> RemoteFolder:
        """See `Folder`."""
        return RemoteFolder(self.file_system, f"{self.path}/{name}")

    def folders(self) -> list[str]:
        """See `Folder`."""
        return self._entries("directory")

    def clear(self) -> None:
        """See `Folder`."""
        with contextlib.suppress(FileNotFoundError):
            self.file_system.rm(self.path, recursive=True)

    def remove_if_empty(self) -> None:
        """See `Folder`. Object stores have no empty folders."""

    def remove_left_overs(self) -> None:
        """See `Folder`. Objects are written as a whole, so there is nothing."""


def open_folder(storage: str | Path) -> Folder:
    """Return the folder at a path, or at a URL that fsspec understands (s3://bucket/folder)."""
    if isinstance(storage, Path) or "://" not in storage:
        return LocalFolder(Path(storage).absolute())
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f"storage is {storage!r}, which takes fsspec. Install graftboost[ray], and the package "
            "of fsspec for this kind of storage."
        ) from error
    file_system, path = fsspec.core.url_to_fs(storage)
    return RemoteFolder(file_system, path)
