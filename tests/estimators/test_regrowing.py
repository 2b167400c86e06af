"""Regrowing for rows that were booked before: at once, or in parts with limited work."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from .wrong_labels import FEATURES, WRONG, assert_nothing_pending, loss, state

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
