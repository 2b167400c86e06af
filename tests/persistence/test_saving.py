"""Saving replaces a file as a whole or not at all."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

import graftboost
from graftboost.persistence import file_format

from .saved_models import MODELS


def test_a_failed_save_keeps_the_previous_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"before")
    dump = file_format.dump

    def half(file: Any, *args: Any) -> None:
        dump(file, *args)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_format, "dump", half)
    with pytest.raises(OSError, match="No space left"):
        MODELS["binary"].save(path)
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"")
    path.chmod(0o640)
    link.symlink_to(path)
    MODELS["binary"].save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    graftboost.load(str(link))
    with pytest.raises(IsADirectoryError, match="Pass the path of a file"):
        MODELS["binary"].save(tmp_path)
    with pytest.raises(FileNotFoundError):
        MODELS["binary"].save(tmp_path / "nowhere" / "model")


def test_devices_are_not_replaced() -> None:
    with pytest.raises(OSError, match="is a device"):
        MODELS["binary"].save("/dev/null")
    assert not Path("/dev/null").is_file()
