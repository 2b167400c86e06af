"""Control characters in data are printed as escapes, so that the terminal does not run them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graftboost import GraftBoostClassifier
from graftboost.store import Store, StoreLockedError
from graftboost.store.printable import printable

from .test_cli import run, run_json

# Clears the screen and renames the window; C1's variant; delete; writing from right to left; lines.
HOSTILE = "erase\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202e\u2066\u2028\u2029\x85\r\nReceipt 9"
OBEYED = [chr(c) for c in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F))]
OBEYED += [chr(c) for c in (*range(0x2066, 0x206A), 0x2028, 0x2029, 0x200E, 0x200F, 0x061C)]
OBEYED.remove("\n")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=50)})
    y = np.where(X["x"] > 0, f"a{HOSTILE}", f"b{HOSTILE}")
    model = GraftBoostClassifier(n_estimators=2, min_samples_leaf=5).fit(X, y)
    path = tmp_path / "store"
    kept = {HOSTILE: [HOSTILE] * 50}
    with Store.create(path, model, attributes=kept, notes={"who": HOSTILE}) as made:
        made.remove([3], request=HOSTILE)
    return path


def _check(text: str) -> None:
    assert not [character for character in OBEYED if character in text]
    assert "\nReceipt 9" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("history",),
        ("history", "--json"),
        ("history", "--last", 1),
        ("receipt", 1),
        ("receipt", 1, "--json"),
        ("receipt", "--row", 3),
        ("info",),
        ("info", "--json"),
        ("remove", 4, "--request", HOSTILE),
        ("remove", 4, "--request", HOSTILE, "--json"),
        ("refit", "--request", HOSTILE),
        ("verify",),
    ],
    ids=str,
)
def test_results(store: Path, arguments: tuple[object, ...]) -> None:
    command, *rest = arguments
    _check(run(command, store, *rest))


def test_control_characters_are_escaped_not_dropped(store: Path) -> None:
    assert run_json("receipt", store, 1)["request"] == HOSTILE
    assert r"erase\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202e\u2066" in run("history", store)
    assert r"\u2028\u2029\x85\r\nReceipt 9" in run("receipt", store, 1)
    assert r"erase\x1b[2J" in run("info", store)


def test_errors(store: Path) -> None:
    _check(run("receipt", store, f"no {HOSTILE}", code=1))
    _check(run("remove", store, "--where", f"`{HOSTILE}` == 1", code=1))
    _check(run("remove", store, "--where", HOSTILE, code=1))
    _check(run("info", store / HOSTILE, code=1))
    (store / "lock").write_text(HOSTILE)
    with Store.open(store), (store / "lock").open("w") as lock:
        lock.write(HOSTILE)
        lock.flush()
        _check(run("remove", store, 1, code=3))
        with pytest.raises(StoreLockedError) as told:
            Store.open(store)
    _check(str(told.value))


def test_receipts_in_python(store: Path) -> None:
    with Store.open(store, read_only=True) as opened:
        receipt = opened.receipt(HOSTILE)
    for text in (str(receipt), receipt.in_words(True)):
        _check(text)
        assert len(text.split("\n")) == len(text.splitlines())


def test_printable() -> None:
    assert printable("Łódź 東京 ½ €") == "Łódź 東京 ½ €"
    for character in [*OBEYED, "\n", "\ud800"]:
        shown = printable(f"a{character}b")
        assert shown.isprintable()
        assert shown.startswith("a\\")
        shown.encode()
    assert printable(os.linesep) == "\\n"
