"""Every kind of change uses the parameters of the store's estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftboost.persistence import file_format
from graftboost.persistence.json_values import decode
from graftboost.store import Store

from .stores import N_ROWS, make_model, make_rows, records

X, _ = make_rows(5, 2)
CHANGES: dict[str, Callable[[Store], Any]] = {
    "remove": lambda store: store.remove([1]),
    "update": lambda store: store.update(remove=[1]),
    "add": lambda store: store.add(X, ["yes", "no"]),
    "both": lambda store: store.update(X, ["yes", "no"], remove=[1]),
}


def _last_rule(path: Path) -> Any:
    return decode(file_format.loads(records(path)[-1], "journal").header["rule"])


@pytest.mark.parametrize("change", CHANGES)
def test_parameters_of_the_estimator_are_used(tmp_path: Path, change: str) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model(tolerance=0.0)) as store:
        store.model.set_params(tolerance=7.0, tolerance_rule="rank")
        CHANGES[change](store)
        rule = _last_rule(path)
        assert (rule["name"], rule["tolerance"]) == ("rank", 7.0)
        assert rule["top_candidates"] == np.ceil(7.0 * 0.1 * 1024)


@pytest.mark.parametrize("change", CHANGES)
def test_parameters_used_by_a_change_are_kept(tmp_path: Path, change: str) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model(tolerance=0.0)) as store:
        store.model.set_params(tolerance=7.0, n_jobs=2)
        CHANGES[change](store)
    with Store.open(path) as store:
        store.remove([2])  # without loading the estimator
        assert _last_rule(path)["tolerance"] == 7.0
        store.compact()
        assert store.model.get_params()["tolerance"] == 7.0
    with Store.open(path) as store:
        assert (store.model.tolerance, store.model.n_jobs) == (7.0, 2)
        store.verify()


def test_parameters_not_used_by_a_change_are_not_kept(tmp_path: Path) -> None:
    with Store.create(tmp_path / "store", make_model(tolerance=0.5)) as store:
        store.remove([1])
        store.model.set_params(tolerance=7.0)
        store.compact()
        assert store.model.tolerance == 7.0  # as set by the user while the store is open
    with Store.open(tmp_path / "store") as store:
        assert store.model.tolerance == 0.5


@pytest.mark.parametrize("change", CHANGES)
def test_invalid_values_are_refused(tmp_path: Path, change: str) -> None:
    with Store.create(tmp_path / "store", make_model()) as store:
        store.model.set_params(tolerance=-1.0)
        with pytest.raises(ValueError, match="tolerance"):
            CHANGES[change](store)
        assert store.n_rows == N_ROWS
        assert len(store.history()) == 1
