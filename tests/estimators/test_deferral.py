"""Deferred regrowing: rows are booked now, and nodes are regrown for all of them later."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .small_models import N_ROWS, TARGETS, X, fitted
from .wrong_labels import FEATURES, WRONG, assert_nothing_pending, loss, state

# --- booking --------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[..., Any]] = {
    "add": lambda model, y, **how: model.add(X[:3], y[:3], **how),
    "remove": lambda model, y, **how: model.remove([3, 5, 150], **how),
    "update": lambda model, y, **how: model.update(X[:3], y[:3], remove=[3, 5, 150], **how),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CHANGES)
def test_booking_keeps_every_split(target: str, name: str) -> None:
    """The model is the same as after an update with a fidelity of 0, which keeps them too."""
    model, other = fitted(target), fitted(target)
    leaves = model.apply(X)
    report = CHANGES[name](model, TARGETS[target], regrow=False)
    CHANGES[name](other, TARGETS[target], fidelity=0.0)
    assert report.strategy == "in-place"
    assert (report.nodes_regrown, report.rows_regrown) == (0, 0)
    assert (report.nodes_shifted, report.rows_shifted) == (0, 0)
    assert report.rows_deferred == {"add": 3, "remove": 3, "update": 6}[name]
    assert np.array_equal(model.apply(X), leaves)
    assert np.array_equal(model.predict(X), other.predict(X))
    model.check_state()


def test_rows_deferred_adds_up() -> None:
    y = TARGETS["two classes"]
    model = fitted()
    found = [
        model.remove([1], regrow=False),
        model.add(X[:2], y[:2], regrow=False),
        model.remove([2]),
        model.update(X[:1], y[:1], remove=[3], regrow=np.False_),
    ]
    assert [report.rows_deferred for report in found] == [1, 3, 3, 5]
    assert (model.pending_.rows_removed, model.pending_.rows_added) == (2, 3)
    assert model.regrow().rows_deferred == 0
    assert model.remove([4]).rows_deferred == 0
    model.check_state()


def test_empty_update_reports_the_rows_of_earlier_ones() -> None:
    model = fitted()
    model.remove([1, 2], regrow=False)
    assert model.remove([]).rows_deferred == 2
    assert model.update(regrow=False).rows_deferred == 2
    assert model.pending_.rows_removed == 2


@pytest.mark.parametrize("target", TARGETS)
def test_adding_and_removing_rows_restores_the_trees(target: str) -> None:
    model = fitted(target)
    before = model.predict(X)
    ids = model.add(X[:4], TARGETS[target][:4], regrow=False).added_ids
    model.remove(ids, regrow=False)
    assert np.array_equal(model.predict(X), before)
    assert (model.pending_.rows_removed, model.pending_.rows_added) == (4, 4)
    model.check_state()


def test_removals_one_by_one_and_at_once_give_the_same_trees(
    remembering: Any, deferred: Any
) -> None:
    model = copy.deepcopy(remembering)
    model.remove(WRONG, regrow=False)
    assert np.array_equal(model.predict_proba(FEATURES), deferred.predict_proba(FEATURES))


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_many_rows_are_booked_without_a_refit(share: float) -> None:
    model = fitted()
    report = model.remove(np.arange(int(share * N_ROWS)), regrow=False)
    assert report.strategy == "in-place"
    assert report.rows_deferred == share * N_ROWS
    model.check_state()
    assert model.regrow().rows_deferred == 0
    model.check_state()
    assert fitted().remove(np.arange(int(share * N_ROWS))).strategy == "refit"


# --- what is pending ------------------------------------------------------------------------------


def test_pending_changes_nothing(deferred: Any) -> None:
    before, predicted = state(deferred), deferred.predict_proba(FEATURES)
    pending = deferred.pending_
    assert deferred.pending_ == pending
    assert state(deferred) == before
    assert np.array_equal(deferred.predict_proba(FEATURES), predicted)
    deferred.check_state()


def test_pending_of_removed_rows(deferred: Any) -> None:
    pending = deferred.pending_
    assert (pending.rows_removed, pending.rows_added) == (len(WRONG), 0)
    assert pending.nodes > 0
    assert 0 < pending.work < 1
    assert 0 < pending.fidelity < deferred.fidelity
    assert pending.memory_left > 0
    assert pending.forgetting.most_memory_left is None
    assert pending.forgetting.rows_remembered is None
    assert pending.forgetting.rows_still_remembered is None


def test_achieved_is_the_change_of_the_losses_by_booking(remembering: Any) -> None:
    model = copy.deepcopy(remembering)
    model.remove(WRONG, regrow=False)
    change = loss(model) - loss(remembering)
    assert model.pending_.forgetting.achieved == pytest.approx(change, abs=1e-3)


def test_pending_depends_on_the_target(deferred: Any) -> None:
    work = [deferred.set_params(fidelity=f).pending_.work for f in (0.5, 0.7, 0.9, 1.0)]
    assert work == sorted(work)
    assert work[0] < work[-1]


def test_larger_memory_floor_regrows_nothing(learning: Any) -> None:
    assert learning.pending_.work > 0
    learning.set_params(memory_floor=1e6)
    assert learning.pending_.work == 0
    report = learning.regrow()
    assert (report.nodes_regrown, report.nodes_shifted, report.rows_deferred) == (0, 0, 0)


def test_nothing_is_pending_at_first() -> None:
    model = fitted()
    before = state(model)
    assert_nothing_pending(model)
    report = model.regrow()
    assert (report.strategy, report.nodes_checked, report.rows_deferred) == ("in-place", 0, 0)
    assert report.forgetting is None
    assert state(model) == before


def test_pending_in_words(deferred: Any) -> None:
    first, second = str(deferred.pending_).splitlines()
    assert first.startswith("0 rows added, 15 removed, not yet regrown: estimated fidelity 0.")
    assert second.startswith(f"{deferred.pending_.nodes} nodes have a better split; ")
    assert second.endswith(f"regrowing takes {deferred.pending_.work:.1%} of a refit")


# --- what clears it -------------------------------------------------------------------------------


def test_refit_clears() -> None:
    model, other = fitted(), fitted()
    model.remove([3, 5], regrow=False)
    other.remove([3, 5])
    assert state(model.refit()) == state(other.refit())
    assert_nothing_pending(model)


def test_fit_clears() -> None:
    model = fitted()
    model.remove([3, 5], regrow=False)
    assert state(model.fit(X, TARGETS["two classes"])) == state(fitted())
    assert_nothing_pending(model)


REFITS: dict[str, Callable[[Any], Any]] = {
    "a new class": lambda model: model.add(X[:3], [7, 7, 7], regrow=False),
    "the first weights": lambda model: model.add(X[:3], [1, 0, 1], [2.0, 0.5, 1.0], regrow=False),
}


@pytest.mark.parametrize("name", REFITS)
def test_update_that_refits_clears(name: str) -> None:
    model = fitted()
    model.remove([3, 5], regrow=False)
    report = REFITS[name](model)
    assert (report.strategy, report.rows_deferred) == ("refit", 0)
    assert "not yet regrown" not in str(report)
    assert_nothing_pending(model)
    model.check_state()


def test_ordinary_update_that_refits_clears() -> None:
    model = fitted()
    model.remove([3, 5], regrow=False)
    report = model.remove(np.arange(50, 150))
    assert (report.strategy, report.rows_deferred) == ("refit", 0)
    assert_nothing_pending(model)


def test_refresh_and_other_rules_do_not_clear(deferred: Any) -> None:
    deferred.refresh().check_state()
    deferred.set_params(update_rule="regret", tolerance=np.inf)
    assert deferred.remove([1]).rows_deferred == len(WRONG)
    assert deferred.pending_.rows_removed == len(WRONG)
    deferred.set_params(update_rule="fidelity", tolerance=None)
    assert deferred.regrow().rows_deferred == 0
    deferred.check_state()
