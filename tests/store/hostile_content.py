"""Changes of a store's files that keep checksums valid, and checks that they are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Store
from graftboost.store.receipts import Receipt

from .stores import reseal_journal, reseal_model

Header, Arrays = dict[str, Any], dict[str, Any]
Hostile = Callable[[Header, Arrays], Any]
NAN = {"float": "nan"}
NEW_CLASS = {"array": ["<U5", ["maybe", "no", "yes"]]}


def set_array(array: str, values: Any, dtype: Any = float) -> Hostile:
    return lambda header, arrays: arrays.update({array: np.array(values, dtype=dtype)})


def set_header(**entries: Any) -> Hostile:
    return lambda header, arrays: header.update(entries)


def without(name: str) -> Hostile:
    return lambda header, arrays: (arrays if name in arrays else header).pop(name)


def set_rule(**entries: Any) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        rule = {**dict(header["rule"]["dict"]), **entries}
        header["rule"] = {"dict": [list(pair) for pair in rule.items()]}

    return change


def set_parameter(**entries: Any) -> Hostile:
    return lambda header, arrays: header["parameters"].update(entries)


def set_receipt(seal: bool = True, **entries: Any) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        content = {**header["receipt"], **entries}
        if seal:
            content["hash"] = Receipt(**{**content, "hash": ""}).computed_hash()
        header["receipt"] = content

    return change


def both(*changes: Hostile) -> Hostile:
    return lambda header, arrays: [change(header, arrays) for change in changes]


def assert_journal_refused(path: Path, hostile: Hostile) -> None:
    """Change the last record of the journal of a valid store, and check that it is not opened."""
    _assert_refused(path, reseal_journal, hostile, r"journal-000001\.graft is damaged")


def assert_model_refused(
    path: Path, hostile: Hostile, message: str = r"model-000001\.graft is damaged"
) -> None:
    """Change the model of a valid store, and check that it is not opened."""
    _assert_refused(path, reseal_model, hostile, message)


def _assert_refused(
    path: Path, reseal: Callable[[Path, Hostile], None], hostile: Hostile, message: str
) -> None:
    reseal(path, lambda header, arrays: None)
    Store.open(path, read_only=True).close()  # it is valid before it is manipulated
    reseal(path, hostile)
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match=message):
            Store.open(path, read_only=read_only)
