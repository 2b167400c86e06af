"""Removed rows are overwritten in memory, however they were added and removed."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest

import graftboost

from . import needs_memory_scan
from .planting import (
    KINDS,
    N_ROWS,
    Planted,
    assert_erased,
    make_rows,
    plant_at_fit,
    plant_later,
)

pytestmark = needs_memory_scan

MANY = N_ROWS * 6 // 10


def remove_one(planted: Planted) -> None:
    planted.remove(0)


def remove_many_in_place(planted: Planted) -> None:
    planted.model.set_params(fidelity=0.0)
    assert planted.remove(MANY) == "in-place"


def remove_many_by_refit(planted: Planted) -> None:
    planted.model.set_params(update_rule="regret")
    assert planted.remove(MANY) == "refit"


def remove_one_later(planted: Planted) -> None:
    """The row is only booked: no more than sums are left of it."""
    assert planted.remove(0, regrow=False) == "in-place"
    assert planted.model.pending_.rows_removed == 1


def remove_many_later(planted: Planted) -> None:
    assert planted.remove(MANY, regrow=False) == "in-place"


def remove_and_regrow(planted: Planted) -> None:
    planted.remove(0, regrow=False)
    planted.model.remove(planted.some_ids(50), regrow=False)
    planted.model.regrow(0.1)
    planted.model.regrow()


REMOVALS = {
    "one": remove_one,
    "one later": remove_one_later,
    "many later": remove_many_later,
    "one, regrown later": remove_and_regrow,
    "many in place": remove_many_in_place,
    "many by refit": remove_many_by_refit,
}


@pytest.fixture(params=REMOVALS)
def remove(request: Any) -> Any:
    return REMOVALS[request.param]


# --- ways to add the row --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_fit(kind: str, remove: Any) -> None:
    assert_erased(lambda: plant_at_fit(kind), remove)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("planted", [0, N_ROWS - 1])
def test_the_first_and_the_last_row_of_fit(kind: str, planted: int) -> None:
    assert_erased(lambda: plant_at_fit(kind, planted), remove_one)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_was_added(kind: str, remove: Any) -> None:
    assert_erased(lambda: plant_later(kind), remove)


@pytest.mark.parametrize("kind", ["regression", "sparse"])
@pytest.mark.parametrize("n_rows", [60, 2_000])
def test_a_row_added_with_many_others(kind: str, n_rows: int) -> None:
    """Arrays grow when rows are added, and their previous memory is overwritten too."""
    assert_erased(lambda: plant_later(kind, n_rows, n_added=900, fidelity=0.0), remove_one)


@pytest.mark.parametrize("kind", ["regression", "sparse"])
def test_a_row_of_fit_with_rows_held_out(kind: str) -> None:
    """The model is fitted to a selection of the caller's rows."""

    def plant() -> Planted:
        for _ in range(20):  # the selection depends on ids, and may not include the planted row
            with contextlib.suppress(LookupError):
                return plant_at_fit(kind, early_stopping=True, planted=701)
        raise AssertionError("the planted row was never selected")

    assert_erased(plant, remove_one)


@pytest.mark.parametrize("kind", ["regression", "sparse"])
def test_a_row_of_a_model_that_caches_few_histograms(kind: str, remove: Any) -> None:
    assert_erased(lambda: plant_at_fit(kind, stats_memory=0), remove)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arrive", [plant_at_fit, plant_later])
def test_a_row_of_a_model_that_uses_threads(kind: str, arrive: Any, remove: Any) -> None:
    """They have stacks and memory of their own."""
    assert_erased(lambda: arrive(kind, n_jobs=2), remove)


# --- what happened since --------------------------------------------------------------------------


def copy_and_drop(planted: Planted) -> None:
    other = copy.deepcopy(planted.model)
    other.remove(planted.some_ids(3))
    del other


def work_on_a_copy(planted: Planted) -> None:
    planted.model = copy.copy(planted.model)


def remove_others(planted: Planted) -> None:
    """Remove so many rows that the gaps are closed."""
    planted.model.remove(planted.some_ids(MANY))


def add_others(planted: Planted) -> None:
    rows = make_rows(planted.kind, 300, None, seed=50)
    planted.model.add(rows.X, rows.y, rows.weight, row_ids=rows.ids)


def fail_to_add_others(planted: Planted) -> None:
    rows = make_rows(planted.kind, 5, None, seed=50)
    rows.ids[2] = planted.some_ids(1)[0]
    with pytest.raises(ValueError, match="already holds"):
        planted.model.add(rows.X, rows.y, rows.weight, row_ids=rows.ids)


def defer_others(planted: Planted) -> None:
    """Book changes of other rows, and regrow nodes while the planted row is there."""
    planted.model.remove(planted.some_ids(20), regrow=False)
    rows = make_rows(planted.kind, 300, None, seed=50)
    planted.model.add(rows.X, rows.y, rows.weight, row_ids=rows.ids, regrow=False)
    planted.model.regrow(fidelity=0.5)


EVENTS = {
    "defer others": defer_others,
    "copy and drop": copy_and_drop,
    "work on a copy": work_on_a_copy,
    "remove others": remove_others,
    "add others": add_others,
    "fail to add others": fail_to_add_others,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("happen", EVENTS.values(), ids=EVENTS)
def test_a_row_after_other_operations(kind: str, happen: Any) -> None:
    def remove(planted: Planted) -> None:
        happen(planted)
        planted.remove(0)

    assert_erased(lambda: plant_later(kind, fidelity=0.0), remove)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_was_added_later_and_removed_later(kind: str) -> None:
    """It is booked twice, and no node is regrown in between."""

    def plant() -> Planted:
        return plant_later(kind, regrow=False)

    assert_erased(plant, remove_one_later)


@pytest.mark.parametrize("kind", ["regression", "sparse"])
@pytest.mark.parametrize("train", ["refit", "refresh"])
@pytest.mark.parametrize("first", ["remove", "train"])
def test_gradients_before_and_after_a_refit_or_refresh(kind: str, train: str, first: str) -> None:
    """Neither the earlier nor the later recorded gradients of the row are left."""

    def remove(planted: Planted) -> None:
        if first == "remove":
            planted.remove(0)
            getattr(planted.model, train)()
            return
        getattr(planted.model, train)()
        earlier = {f"{name} before": secret for name, secret in planted.secrets.items()}
        planted.add_secrets_of_the_engine()
        planted.secrets.update(earlier)
        planted.remove(0)

    assert_erased(lambda: plant_at_fit(kind), remove)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_a_loaded_model(kind: str, remove: Any, tmp_path: Path) -> None:
    """A loaded model works on the pages of its file, and changes them only in memory."""

    def load() -> Planted:
        planted = plant_at_fit(kind)
        planted.file = tmp_path / "model"
        planted.model.save(planted.file)
        planted.model = graftboost.load(planted.file)
        planted.model.check_state()  # reads every page
        return planted

    assert_erased(load, remove)
