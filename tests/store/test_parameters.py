"""Every kind of change uses the parameters of the store's estimator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict
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
    with Store.create(path, make_model()) as store:
        store.model.set_params(tolerance=7.0, update_rule="rank")
        CHANGES[change](store)
        rule = _last_rule(path)
        assert (rule["name"], rule["tolerance"]) == ("rank", 7.0)
        assert rule["top_candidates"] == np.ceil(7.0 * 1.0 * 255)
        store.model.set_params(tolerance=None, update_rule="fidelity", fidelity=0.25)
        store.model.set_params(memory_floor=0.5)
        store.remove([2])
        assert _last_rule(path) == {
            "name": "fidelity",
            "fidelity": 0.25,
            "memory_floor": 0.5,
            "tolerance": 0.0,
            "top_candidates": 1,
            "regrow": True,
        }


@pytest.mark.parametrize("change", CHANGES)
def test_parameters_used_by_a_change_are_kept(tmp_path: Path, change: str) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model(update_rule="regret", tolerance=0.0)) as store:
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
    with Store.create(tmp_path / "store", make_model(fidelity=0.5)) as store:
        store.remove([1])
        store.model.set_params(fidelity=0.9)
        store.compact()
        assert store.model.fidelity == 0.9  # as set by the user while the store is open
    with Store.open(tmp_path / "store") as store:
        assert store.model.fidelity == 0.5


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("tolerance", -1.0), ("tolerance", 1.0), ("fidelity", 1.5), ("memory_floor", -1.0)],
)
@pytest.mark.parametrize("change", CHANGES)
def test_invalid_values_are_refused(
    tmp_path: Path, change: str, parameter: str, value: float
) -> None:
    """A tolerance of 1 is invalid because the default rule does not use it."""
    with Store.create(tmp_path / "store", make_model()) as store:
        store.model.set_params(**{parameter: value})
        with pytest.raises(ValueError, match=parameter):
            CHANGES[change](store)
        assert store.n_rows == N_ROWS
        assert len(store.history()) == 1


@pytest.mark.parametrize("action", ["refit", "refresh"])
def test_store_can_be_opened_after_training_with_an_unused_tolerance(
    tmp_path: Path, action: str
) -> None:
    """Refit and refresh use no rule; they are refused, or made with any parameters."""
    path = tmp_path / "store"
    with Store.create(path, make_model()) as store:
        store.model.set_params(tolerance=1.0)
        with contextlib.suppress(ValueError):
            getattr(store, action)()
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS
        store.verify()


def test_model_with_an_unused_tolerance(tmp_path: Path) -> None:
    """A store of it is refused before anything is written, or can be opened."""
    path = tmp_path / "store"
    with contextlib.suppress(ValueError):
        Store.create(path, make_model(tolerance=1.0)).close()
    if path.exists():
        Store.open(path).close()


# --- the fidelity of one change -------------------------------------------------------------------

WITH_FIDELITY: dict[str, Callable[[Store], Any]] = {
    "remove": lambda store: store.remove([1, 2, 3], fidelity=0.25),
    "update": lambda store: store.update(remove=[1, 2, 3], fidelity=0.25),
    "add": lambda store: store.add(X, ["yes", "no"], fidelity=0.25),
    "both": lambda store: store.update(X, ["yes", "no"], remove=[1, 2, 3], fidelity=0.25),
}


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("change", WITH_FIDELITY)
def test_fidelity_of_one_change(tmp_path: Path, change: str, loads: bool) -> None:
    """It is recorded, replayed when the store is opened, and does not apply to other changes."""
    path = tmp_path / "store"
    Store.create(path, make_model(fidelity=1.0)).close()
    with Store.open(path) as store:
        if loads:
            store.model  # noqa: B018
        report = WITH_FIDELITY[change](store)
        rule = _last_rule(path)
        assert (rule["name"], rule["fidelity"]) == ("fidelity", 0.25)
        digest, forgetting = store.digest, store.last_receipt.forgetting
        assert forgetting == asdict(report.forgetting)
    with Store.open(path) as store:
        assert store.digest == digest
        assert store.last_receipt.forgetting == forgetting
        store.verify()
        store.remove([4])
        assert _last_rule(path)["fidelity"] == 1.0
        assert store.model.fidelity == 1.0


@pytest.mark.parametrize("fidelity", [0.0, 1.0])
def test_change_with_a_fidelity_equals_that_of_the_estimator(
    tmp_path: Path, fidelity: float
) -> None:
    model = make_model("regressor", fidelity=0.5)
    out = np.arange(0, 40, 4)
    with Store.create(tmp_path / "store", model) as store:
        report = store.remove(out, fidelity=fidelity)
        expected = model.remove(out, fidelity=fidelity)
        assert report.rows_regrown == expected.rows_regrown
        assert report.forgetting == expected.forgetting
        assert np.array_equal(store.model.predict(X), model.predict(X))


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("change", WITH_FIDELITY)
def test_fidelity_of_one_change_with_another_rule(tmp_path: Path, change: str, loads: bool) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model(update_rule="regret")).close()
    with Store.open(path) as store:
        if loads:
            store.model  # noqa: B018
        digest = store.digest
        with pytest.raises(ValueError, match="fidelity applies to update_rule='fidelity', but"):
            WITH_FIDELITY[change](store)
        assert (store.n_rows, store.digest, len(store.history())) == (N_ROWS, digest, 1)
        store.verify()


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("fidelity", [-0.1, 1.5, np.nan, "high", True])
def test_invalid_fidelity_of_one_change(tmp_path: Path, fidelity: Any, loads: bool) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    with Store.open(path) as store:
        if loads:
            store.model  # noqa: B018
        for rows in ([1], []):
            with pytest.raises(ValueError, match=r"fidelity is .*, but a fraction is expected"):
                store.remove(rows, fidelity=fidelity)
        assert (store.n_rows, len(store.history())) == (N_ROWS, 1)
        store.verify()
