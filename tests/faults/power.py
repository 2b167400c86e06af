"""The states in which a power cut may leave a disk: only synced data is certain.

The model is stricter than any file system: until a file is synced, each write to it since then may
have arrived or not, whole or in part, in any order; until a directory is synced, each of its names
may be the old one or the new one, whatever became of the others.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ENTRY = struct.Struct("<5Q")
BLOCK = 512  # bytes that a disk writes at once


@dataclass(frozen=True)
class Entry:
    """A call recorded by `recording_disk.cpp`."""

    kind: str
    one: int
    other: int
    name: str
    data: bytes


def read_log(path: Path) -> Iterator[Entry]:
    """Yield the recorded calls, in order."""
    log, at = path.read_bytes(), 0
    while at < len(log):
        kind, one, other, name_size, size = ENTRY.unpack_from(log, at)
        at += ENTRY.size
        name = log[at : at + name_size].decode()
        data = log[at + name_size : at + name_size + size]
        at += name_size + size
        yield Entry(chr(kind), one, other, name, data)


@dataclass
class File:
    """A file: its content when it was last synced, and the writes since then (place, bytes).

    A write of None truncates the file at that place.
    """

    certain: bytes = b""
    writes: list[tuple[int, bytes | None]] = field(default_factory=list)
    is_directory: bool = False

    def content(self) -> bytes:
        """The content that a reader gets now."""
        return _written(self.certain, self.writes)

    def sync(self) -> None:
        self.certain, self.writes = self.content(), []

    def survivor(self, rng: random.Random) -> bytes:
        """Return a content that a power cut may leave."""
        kind = rng.randrange(4)
        if kind == 0 or not self.writes:
            return self.certain
        if kind == 1:
            return self.content()
        if kind == 2:  # all writes up to some point, the last one in part
            n = rng.randrange(len(self.writes))
            writes = [*self.writes[:n], _torn(*self.writes[n], rng)]
        else:  # in any order: any subset of the writes
            writes = [_torn(*write, rng) for write in self.writes if rng.random() < 0.7]
        return _written(self.certain, writes)


def _torn(at: int, data: bytes | None, rng: random.Random) -> tuple[int, bytes | None]:
    """Return a write without some of its blocks."""
    kind = rng.randrange(5)
    if data is None or kind == 0:
        return at, data
    if kind == 1:
        return at, data[: rng.randrange(len(data) + 1)]
    if kind == 2:
        return at, bytes(len(data))  # the file has grown, and nothing was written to it
    torn = bytearray(data)
    for begin in range(0, len(torn), BLOCK):
        if rng.random() < 0.5:
            n = len(torn[begin : begin + BLOCK])
            torn[begin : begin + n] = bytes(n) if kind == 3 else rng.randbytes(n)
    return at, bytes(torn)


def _written(content: bytes, writes: list[tuple[int, bytes | None]]) -> bytes:
    changed = bytearray(content)
    for at, data in writes:
        if data is None:
            del changed[at:]
        changed.extend(bytes(max(0, at - len(changed))))
        if data is not None:
            changed[at : at + len(data)] = data
    return bytes(changed)


class Disk:
    """The files below a folder, as calls change them.

    Parameters
    ----------
    root : Path
        The folder, whose present content is certain.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[int, File] = {}  # by inode, of the present files
        # The files of each name since its directory was synced: certain, ..., present.
        self.names: dict[str, list[File | None]] = {}
        for path in sorted([root, *root.rglob("*")]):
            file = File(b"" if path.is_dir() else path.read_bytes(), is_directory=path.is_dir())
            self.files[path.stat().st_ino] = file
            self.names[str(path)] = [file]

    def apply(self, entry: Entry) -> None:
        """Apply a recorded call."""
        file = self.files.get(entry.one)
        match entry.kind:
            case "W" if file:
                file.writes.append((entry.other, entry.data))
            case "T" if file:
                file.writes.append((entry.other, None))
            case "S" if file:
                self._sync_names(file) if file.is_directory else file.sync()
            case "C" | "D":
                self.files[entry.one] = File(is_directory=entry.kind == "D")
                self._name(entry.name, self.files[entry.one])
            case "R":
                moved = self._now(entry.name)
                self._name(entry.data.decode(), moved)
                self._name(entry.name, None)
            case "L":
                self._name(entry.data.decode(), self._now(entry.name))
            case "U":
                self._name(entry.name, None)

    def _now(self, name: str) -> File | None:
        return self.names.get(name, [None])[-1]

    def _name(self, name: str, file: File | None) -> None:
        if name.startswith(str(self.root)):
            self.names.setdefault(name, [None]).append(file)

    def _sync_names(self, directory: File) -> None:
        [path] = [name for name, files in self.names.items() if files[-1] is directory]
        for name, files in self.names.items():
            if str(PurePosixPath(name).parent) == path:
                del files[:-1]

    def write_survivors(self, folder: Path, rng: random.Random) -> dict[str, bytes]:
        """Write a state after a power cut at this moment to a folder; returns the files."""
        chosen = {name: rng.choice(files) for name, files in self.names.items()}
        chosen[str(self.root)] = self._now(str(self.root))
        contents: dict[str, bytes] = {}
        survivors: dict[int, bytes] = {}  # one for each file, which may have several names
        for name in sorted(chosen):
            file = chosen[name]
            path = folder / PurePosixPath(name).relative_to(self.root)
            if file is None or (name != str(self.root) and not path.parent.is_dir()):
                continue
            if file.is_directory:
                path.mkdir(exist_ok=True)
                continue
            content = survivors.setdefault(id(file), file.survivor(rng))
            path.write_bytes(content)
            contents[str(path.relative_to(folder))] = content
        return contents
