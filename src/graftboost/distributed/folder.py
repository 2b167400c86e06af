"""Folders that survive the processes that write to them: on a disk, or in an object store."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.file_format import Container
from graftboost.persistence.pieces import Arrays


class Folder(Protocol):
    """Named files, each of which is written as a whole.

    When `write` returns, the file lasts; when it raises, there is either the former file or none.
    """

    def write(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Write a file; an existing one is replaced."""
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


class LocalFolder:
    """A folder of a disk, or of a network file system that all machines mount."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """See `Folder`."""
        self.path.mkdir(parents=True, exist_ok=True)
        with atomic_file.replacing(self.path / name, atomic_file.PRIVATE) as file:
            file_format.dump(file, header, arrays)

    def read(self, name: str) -> Container:
        """See `Folder`."""
        return file_format.load(self.path / name, links=False)

    def names(self) -> list[str]:
        """See `Folder`."""
        if not self.path.is_dir():
            return []
        return sorted(path.name for path in self.path.iterdir() if path.is_file())

    def remove(self, name: str) -> None:
        """See `Folder`."""
        atomic_file.remove(self.path / name)
        with contextlib.suppress(FileNotFoundError):
            atomic_file.flush_directory(self.path)

    def inside(self, name: str) -> LocalFolder:
        """See `Folder`."""
        return LocalFolder(self.path / name)


class RemoteFolder:
    """A folder of an object store, through fsspec."""

    def __init__(self, file_system: Any, path: str) -> None:
        self.file_system = file_system
        self.path = path.rstrip("/")

    def write(self, name: str, header: Mapping[str, Any], arrays: Arrays) -> None:
        """See `Folder`."""
        self.file_system.makedirs(self.path, exist_ok=True)
        self.file_system.pipe_file(f"{self.path}/{name}", file_format.dumps(header, arrays))

    def read(self, name: str) -> Container:
        """See `Folder`."""
        path = f"{self.path}/{name}"
        return file_format.loads(self.file_system.cat_file(path), path)

    def names(self) -> list[str]:
        """See `Folder`."""
        try:
            found = self.file_system.ls(self.path, detail=True)
        except FileNotFoundError:
            return []
        return sorted(
            entry["name"].rstrip("/").rsplit("/", 1)[-1]
            for entry in found
            if entry["type"] == "file"
        )

    def remove(self, name: str) -> None:
        """See `Folder`."""
        with contextlib.suppress(FileNotFoundError):
            self.file_system.rm_file(f"{self.path}/{name}")

    def inside(self, name: str) -> RemoteFolder:
        """See `Folder`."""
        return RemoteFolder(self.file_system, f"{self.path}/{name}")


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
