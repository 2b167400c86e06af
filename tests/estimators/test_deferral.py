"""Deferred regrowing: rows are booked now, and nodes are regrown for all of them later."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from graftboost import GraftBoostClassifier

from .small_models import N_ROWS, TARGETS, X, fitted

FEATURES, LABELS = load_breast_cancer(return_X_y=True)
WRONG = np.arange(0, 569, 40)
LABELS[WRONG] = 1 - LABELS[WRONG]


@pytest.fixture(scope="module")
def remembering() -> GraftBoostClassifier:
    """A model of rows of which some have wrong labels, so that there is something to forget."""
    return GraftBoostClassifier(n_estimators=20, n_jobs=1).fit(FEATURES, LABELS)


@pytest.fixture
def deferred(remembering: Any) -> Any:
    """The same model after the rows with wrong labels were removed one by one."""
    model = copy.deepcopy(remembering)
    for row in WRONG:
        model.remove(row, regrow=False)
    return model


@pytest.fixture
def learning() -> Any:
    """A model to which rows with wrong labels were added; no leaf has too few rows."""
    model = GraftBoostClassifier(n_estimators=20, n_jobs=1)
    rest = np.delete(np.arange(569), WRONG)
    model.fit(FEATURES[rest], LABELS[rest], row_ids=rest)
    for row in WRONG:
        model.add(FEATURES[[row]], LABELS[[row]], row_ids=[row], regrow=False)
    return model


def loss(model: Any) -> float:
    """The loss of the rows with wrong labels."""
    probabilities = model.predict_proba(FEATURES[WRONG])
    return -float(np.log(probabilities[np.arange(len(WRONG)), LABELS[WRONG]]).sum())


def state(model: Any) -> bytes:
    return pickle.dumps(model._engine_model)


def assert_nothing_pending(model: Any) -> None:
    pending = model.pending_
    assert (pending.rows_removed, pending.rows_added, pending.nodes, pending.work) == (0, 0, 0, 0)
    assert pending.forgetting is None
    assert math.isnan(pending.fidelity)
    assert pending.memory_left == 0
    assert str(pending) == "nothing to regrow"


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


# --- regrowing ------------------------------------------------------------------------------------


def test_regrowing_forgets_most_of_what_a_refit_forgets(remembering: Any, deferred: Any) -> None:
    before, booked = loss(remembering), loss(deferred)
    refitted = loss(copy.deepcopy(deferred).refit())
    report = deferred.regrow()
    assert report.strategy == "in-place"
    assert report.nodes_regrown > 0
    assert report.rows_deferred == 0
    assert_nothing_pending(deferred)
    assert before < booked < loss(deferred)
    assert abs(refitted - loss(deferred)) < (refitted - booked) / 2
    deferred.check_state()


def test_larger_fidelity_forgets_more(deferred: Any) -> None:
    losses = []
    for fidelity in (0.0, 0.6, 0.85, 1.0):
        model = copy.deepcopy(deferred)
        report = model.regrow(fidelity=fidelity)
        assert report.rows_deferred == 0
        assert report.fidelity >= fidelity - 0.01
        losses.append(loss(model))
        model.check_state()
    assert losses == sorted(losses)
    assert losses[0] < losses[1] < losses[3]


def test_argument_replaces_the_parameter_for_one_call(deferred: Any) -> None:
    other = copy.deepcopy(deferred).set_params(fidelity=0.6)
    assert deferred.regrow(fidelity=0.6).forgetting == other.regrow().forgetting
    assert state(deferred) == state(other)
    assert deferred.fidelity == 0.85


def test_report_of_regrowing(deferred: Any) -> None:
    report = deferred.regrow()
    assert len(report.added_ids) == len(report.removed_ids) == 0
    assert report.trees_touched == 20
    assert report.nodes_checked >= report.nodes_regrown + report.nodes_shifted > 0
    assert report.fidelity == report.forgetting.fidelity
    assert report.forgetting.rows_remembered is None
    assert report.memory_left == report.forgetting.memory_left
    first, *_, last = str(report).splitlines()
    assert first.startswith("in-place update: 0 rows added, 0 removed in ")
    assert last == f"  {report.forgetting.in_words()}"
    assert "estimated fidelity 0.8" in last


def test_report_of_booking(deferred: Any) -> None:
    report = deferred.remove([1], regrow=False)
    assert report.forgetting is None
    assert math.isnan(report.fidelity)
    assert str(report).splitlines()[-1] == "  16 rows are booked and not yet regrown"
    assert "not yet regrown" in str(deferred.remove([2]))  # of the others
    deferred.regrow()
    assert "not yet regrown" not in str(deferred.remove([3]))


def test_refit_if_that_is_cheaper(deferred: Any) -> None:
    other = copy.deepcopy(deferred).refit()
    report = deferred.regrow(fidelity=1.0)
    assert report.strategy == "refit"
    assert (report.fidelity, report.memory_left, report.rows_deferred) == (1.0, 0.0, 0)
    assert state(deferred) == state(other)
    assert_nothing_pending(deferred)


def test_fidelity_zero_keeps_the_structure(deferred: Any) -> None:
    leaves = deferred.apply(FEATURES)
    report = deferred.regrow(fidelity=0.0)
    assert (report.nodes_regrown, report.nodes_shifted, report.rows_deferred) == (0, 0, 0)
    assert np.array_equal(deferred.apply(FEATURES), leaves)


# --- limited work ---------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [0.05, 0.1, 0.3])
def test_repeated_calls_reach_the_target(learning: Any, work: float) -> None:
    left = [learning.pending_.memory_left]
    reports = []
    for _ in range(100):
        reports.append(learning.regrow(work))
        learning.check_state()
        assert reports[-1].strategy == "in-place"
        assert reports[-1].rows_regrown + reports[-1].rows_shifted > 0
        if not reports[-1].rows_deferred:
            break
        left.append(learning.pending_.memory_left)
    assert len(reports) > 1
    assert {report.rows_deferred for report in reports[:-1]} == {len(WRONG)}
    assert reports[-1].rows_deferred == 0
    assert left == sorted(left, reverse=True)
    assert_nothing_pending(learning)


@pytest.mark.parametrize("work", [0.05, 0.1, 0.3])
def test_work_is_limited(learning: Any, work: float) -> None:
    for _ in range(100):
        report = learning.regrow(work)
        if not report.rows_deferred:
            break  # the growth order comes on top
        # A shift may leave a split below it with too few rows, which is then regrown.
        if not report.nodes_shifted:
            assert report.rows_regrown <= work * learning.n_rows_ * 20


def test_work_of_splits_that_are_no_longer_allowed_is_limited_too(deferred: Any) -> None:
    """Leaves have too few rows after the removals, and regrowing all of them takes 30%."""
    report = deferred.regrow(0.01)
    assert report.rows_regrown <= 0.01 * deferred.n_rows_ * 20


@pytest.mark.parametrize("work", [1e-6, 0.001, 0.01])
def test_repeated_calls_with_little_work_come_to_an_end(learning: Any, work: float) -> None:
    """Each call does something or says that there is nothing left to do."""
    for _ in range(2000):
        before = state(learning)
        if not learning.regrow(work).rows_deferred:
            break
        assert state(learning) != before
    assert_nothing_pending(learning)


def test_limited_work_forgets_a_part(remembering: Any, deferred: Any) -> None:
    model = copy.deepcopy(deferred)
    report = model.regrow(0.05)
    assert report.rows_deferred == len(WRONG)
    assert report.fidelity < 0.85
    assert model.pending_.rows_removed == len(WRONG)
    assert "15 rows are booked and not yet regrown" in str(report)
    assert loss(deferred) < loss(model)
    assert model.pending_.nodes < deferred.pending_.nodes


@pytest.mark.parametrize(
    "work", [1, math.inf, 10**6, 0.5, np.float32(0.5), np.int64(1), Fraction(1, 2)], ids=repr
)
def test_work_of_every_kind_of_number(deferred: Any, work: Any) -> None:
    other = copy.deepcopy(deferred)
    assert deferred.regrow(work).forgetting == other.regrow(float(work)).forgetting
    assert state(deferred) == state(other)


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


# --- copies and threads ---------------------------------------------------------------------------


def test_threads_make_no_difference(deferred: Any) -> None:
    other = copy.deepcopy(deferred).set_params(n_jobs=2)
    assert other.pending_ == deferred.pending_
    for work in (0.1, None):
        for model in (deferred, other):
            model.regrow(work)
        assert state(deferred) == state(other)


def test_original_and_copy_are_regrown_independently(deferred: Any) -> None:
    before, pending = state(deferred), deferred.pending_
    copy.deepcopy(deferred).regrow()
    assert state(deferred) == before
    assert deferred.pending_ == pending
