"""Permissions of a store, and links and other special files in its directory."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Store, StoreError

from .stores import N_ROWS, make_model, make_rows

X, _ = make_rows(5, 2)
PRECIOUS = b"precious\n" * 50


def _modes(path: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()}


def _use(path: Path) -> None:
    with Store.open(path) as store:
        store.add(X, ["yes", "no"])
        store.compact()
        store.add(X, ["yes", "no"])


@pytest.fixture(params=[0o022, 0o077, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


# --- permissions ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("umask")
def test_only_the_owner_can_read_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "stores" / "store"
    Store.create(path, make_model()).close()
    _use(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert set(_modes(path)) == {
        "lock", "receipts.jsonl", "model-000002.graft", "journal-000002.graft"
    }  # fmt: skip
    assert set(_modes(path).values()) == {0o600}


@pytest.mark.usefixtures("umask")
def test_permissions_of_a_group_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    path.chmod(0o750)
    for file in path.iterdir():
        file.chmod(0o640)
    _use(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert set(_modes(path).values()) == {0o640}


def test_files_in_an_existing_directory_are_private(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    path.chmod(0o755)  # the user's own directory keeps its permissions
    Store.create(path, make_model()).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert set(_modes(path).values()) == {0o600}
    _use(path)
    assert set(_modes(path).values()) == {0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change to any group")
def test_the_group_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    for file in path.iterdir():
        os.chown(file, -1, 4321)
        file.chmod(0o640)
    _use(path)
    assert {file.stat().st_gid for file in path.iterdir()} == {4321}


# --- links ----------------------------------------------------------------------------------------

OWN_FILES = ("lock", "receipts.jsonl", "model-000001.graft", "journal-000001.graft")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.create(tmp_path / "store", make_model()) as store:
        store.remove([1])
    return tmp_path / "store"


@pytest.mark.parametrize("name", OWN_FILES)
@pytest.mark.parametrize("target", ["victim", "the file itself", "nothing"])
def test_links_are_refused(path: Path, name: str, target: str) -> None:
    moved = path.with_name("moved")
    (path / name).rename(moved)
    if target == "victim":
        moved.write_bytes(PRECIOUS)
    elif target == "nothing":
        moved.unlink()
    content = None if target == "nothing" else moved.read_bytes()
    (path / name).symlink_to(moved)
    for read_only in (False, True):
        if name == "lock" and read_only:  # readers do not need it
            Store.open(path, read_only=True).close()
            continue
        with pytest.raises(InvalidFileError, match=f"{name} is a symbolic link"):
            Store.open(path, read_only=read_only)
    assert (moved.read_bytes() if moved.exists() else None) == content
    assert (path / name).is_symlink()


@pytest.mark.parametrize("name", ["journal-000002.graft", "receipts.jsonl"])
def test_links_created_while_the_store_is_open(path: Path, name: str) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(PRECIOUS)
    with Store.open(path) as store:
        store.compact()
        if (path / name).exists():
            (path / name).rename(path.with_name("moved"))
        (path / name).symlink_to(victim)
        with pytest.raises((StoreError, InvalidFileError), match="is a symbolic link"):
            store.remove([2])
    assert victim.read_bytes() == PRECIOUS


def test_link_in_place_of_the_next_model(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(PRECIOUS)
    with Store.open(path) as store:
        (path / "model-000002.graft").symlink_to(victim)
        store.compact()
        assert not (path / "model-000002.graft").is_symlink()
    assert victim.read_bytes() == PRECIOUS
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS - 1


def test_a_store_reached_through_a_link(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    with Store.open(link) as store:
        store.remove([2])
        store.compact()
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS - 2


@pytest.mark.parametrize("name", OWN_FILES)
@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_other_kinds_of_files_are_refused(path: Path, name: str, kind: str) -> None:
    (path / name).unlink()
    if kind == "pipe":
        os.mkfifo(path / name)
    else:
        (path / name).mkdir()
    # In a process of its own, because opening a pipe may block for ever.
    code = f"from graftboost.store import Store; Store.open({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert f"{name} is a directory, a pipe or a device" in done.stderr
    assert "InvalidFileError" in done.stderr
