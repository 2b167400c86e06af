"""The fidelity rule: how much an update regrows, what it reports, and which calls it refuses."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from graftboost import GraftBoostClassifier
from graftboost.estimators.forgetting import Forgetting

from .small_models import N_ROWS, TARGETS, X, fitted

REMOVED = np.arange(0, 569, 40)


@pytest.fixture(scope="module")
def model() -> GraftBoostClassifier:
    """A model of rows of which some have wrong labels, so that there is something to forget."""
    features, y = load_breast_cancer(return_X_y=True)
    y[REMOVED] = 1 - y[REMOVED]
    return GraftBoostClassifier(n_estimators=20, n_jobs=1).fit(features, y)


def remove(model: Any, *, fidelity: float | None = None, **parameters: Any) -> tuple[Any, Any]:
    """Remove the rows with wrong labels from a copy; returns the copy and the report."""
    updated = copy.deepcopy(model).set_params(**parameters)
    report = updated.remove(REMOVED, fidelity=fidelity)
    updated.check_state()
    return updated, report


def test_fidelity_zero_regrows_nothing(model: Any) -> None:
    updated, report = remove(model, fidelity=0.0)
    assert report.strategy == "in-place"
    assert (report.nodes_regrown, report.rows_regrown) == (0, 0)
    assert (report.nodes_shifted, report.rows_shifted) == (0, 0)
    features, _ = load_breast_cancer(return_X_y=True)
    assert np.array_equal(updated.apply(features), model.apply(features))
    assert not np.array_equal(updated.predict_proba(features), model.predict_proba(features))


def test_larger_fidelity_regrows_more(model: Any) -> None:
    n_rows = []
    for fidelity in (0.0, 0.5, 1.0):
        _, report = remove(model, fidelity=fidelity)
        n_rows.append(math.inf if report.strategy == "refit" else report.rows_regrown)
    assert n_rows == sorted(n_rows)
    assert n_rows[0] == 0 < n_rows[1]


def test_larger_memory_floor_regrows_nothing(model: Any) -> None:
    """Rows are added, because removed rows may leave too few in a leaf, which must be regrown.

    They are few, so that no refit is cheaper than to regrow what they change.
    """
    features, y = load_breast_cancer(return_X_y=True)
    added = REMOVED[:8]
    reports = {}
    for floor in (0.02, 1e6):
        updated = copy.deepcopy(model).set_params(memory_floor=floor)
        reports[floor] = updated.add(features[added], y[added])
        updated.check_state()
    assert reports[0.02].nodes_regrown > 0
    assert reports[0.02].forgetting.rows_remembered > 0
    report = reports[1e6]
    assert report.strategy == "in-place"
    assert (report.nodes_regrown, report.nodes_shifted) == (0, 0)
    assert (report.forgetting.rows_remembered, report.forgetting.rows_still_remembered) == (0, 0)
    assert "none of 8 rows was clearly to be learned" in str(report)


def test_argument_replaces_the_parameter_for_one_call(model: Any) -> None:
    features, _ = load_breast_cancer(return_X_y=True)
    by_argument, report = remove(model, fidelity=0.5)
    by_parameter = copy.deepcopy(model).set_params(fidelity=0.5)
    expected = by_parameter.remove(REMOVED)
    assert by_argument.fidelity == model.fidelity == 0.85
    assert report.rows_regrown == expected.rows_regrown
    assert report.forgetting == expected.forgetting
    assert np.array_equal(by_argument.predict_proba(features), by_parameter.predict_proba(features))


@pytest.mark.parametrize("target", TARGETS)
def test_every_method_takes_a_fidelity(target: str) -> None:
    y = TARGETS[target]
    model = fitted(target, fidelity=1.0)
    rows = slice(0, 3)
    for report in (
        model.remove([0, 1, 2], fidelity=0.0),
        model.add(X[rows], y[rows], row_ids=[0, 1, 2], fidelity=0.0),
        model.update(X[rows], y[rows], remove=[5], fidelity=0.0),
    ):
        assert (report.strategy, report.nodes_regrown) == ("in-place", 0)
    model.check_state()


# --- reports --------------------------------------------------------------------------------------


def test_report_of_an_update_in_place(model: Any) -> None:
    _, report = remove(model)
    found = report.forgetting
    assert isinstance(found, Forgetting)
    assert all(math.isfinite(getattr(found, field.name)) for field in fields(found))
    assert report.fidelity == found.fidelity
    assert report.memory_left == found.memory_left
    assert 0 <= found.rows_still_remembered <= found.rows_remembered <= len(REMOVED)
    assert str(report).splitlines()[-1] == f"  {found.in_words(len(REMOVED))}"
    assert found.achieved > 0


def test_achieved_is_the_change_of_the_losses(model: Any) -> None:
    """The labels of the removed rows were wrong, so they become less probable."""
    features, y = load_breast_cancer(return_X_y=True)

    def loss(of: Any) -> float:
        probabilities = of.predict_proba(features[REMOVED])
        return -float(np.log(probabilities[np.arange(len(REMOVED)), 1 - y[REMOVED]]).sum())

    updated, report = remove(model)
    assert report.strategy == "in-place"
    assert report.forgetting.achieved == pytest.approx(loss(updated) - loss(model), abs=1e-3)


@pytest.mark.parametrize("rule", ["regret", "rank"])
def test_other_rules_estimate_nothing(model: Any, rule: str) -> None:
    _, report = remove(model, update_rule=rule, tolerance=np.inf)
    assert report.strategy == "in-place"
    assert report.forgetting is None
    assert math.isnan(report.fidelity)
    assert math.isnan(report.memory_left)
    assert "remembered" not in str(report)


@pytest.mark.parametrize("parameters", [{}, {"update_rule": "regret"}, {"update_rule": "rank"}])
def test_refit_forgets_all(parameters: dict[str, Any]) -> None:
    """Rows of an unseen class are added by a refit."""
    report = fitted(**parameters).add(X[:3], [7, 7, 7])
    assert report.strategy == "refit"
    assert report.forgetting is None
    assert (report.fidelity, report.memory_left) == (1.0, 0.0)
    assert "remembered" not in str(report)


def test_empty_update_estimates_nothing() -> None:
    report = fitted().update()
    assert report.forgetting is None
    assert math.isnan(report.fidelity)


@pytest.mark.parametrize("target", TARGETS)
def test_estimates_of_rows_without_memory_are_finite(target: str) -> None:
    """A constant target leaves no residuals, and rows of weight zero change nothing."""
    y = np.ones(N_ROWS) if target == "regression" else TARGETS[target]
    model = fitted(target).fit(X, y, np.linspace(1, 2, N_ROWS))
    for report in (model.remove([0]), model.add(X[:1], [1], [0.0])):
        found = report.forgetting
        assert all(math.isfinite(getattr(found, field.name)) for field in fields(found))
    model.check_state()


# --- calls that are refused -----------------------------------------------------------------------

CALLS = {
    "add": lambda model, **how: model.add(X[:3], TARGETS["two classes"][:3], **how),
    "remove": lambda model, **how: model.remove([3, 5], **how),
    "update": lambda model, **how: model.update(
        X[:3], TARGETS["two classes"][:3], remove=[3, 5], **how
    ),
}


def assert_refused(model: Any, name: str, message: str, **how: Any) -> None:
    """Check that a call raises ValueError and changes nothing."""
    before, predicted = pickle.dumps(model._engine_model), model.predict_proba(X)
    with pytest.raises(ValueError, match=message):
        CALLS[name](model, **how)
    assert pickle.dumps(model._engine_model) == before
    assert np.array_equal(model.predict_proba(X), predicted)
    assert model.row_ids_.tolist() == list(range(N_ROWS))
    model.check_state()
    model.set_params(update_rule="fidelity", tolerance=None)
    assert model.add(X[:1], [1]).added_ids.tolist() == [N_ROWS]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("tolerance", [0.0, 3.0, np.inf])
def test_tolerance_does_not_apply_to_the_fidelity_rule(name: str, tolerance: float) -> None:
    message = "tolerance applies to update_rule='regret' .* but update_rule is 'fidelity'"
    assert_refused(fitted(tolerance=tolerance), name, message)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("rule", ["regret", "rank"])
def test_fidelity_does_not_apply_to_other_rules(name: str, rule: str) -> None:
    message = f"fidelity applies to update_rule='fidelity', but update_rule is '{rule}'"
    assert_refused(fitted(update_rule=rule), name, message, fidelity=0.5)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("rule", ["fidelity", "regret"])
@pytest.mark.parametrize("fidelity", [-0.1, 1.1, np.nan, np.inf, True, "0.5", [0.5]], ids=str)
def test_invalid_fidelity_of_one_call(name: str, rule: str, fidelity: Any) -> None:
    message = "fidelity is .*, but a fraction is expected. Pass a number from 0 to 1"
    assert_refused(fitted(update_rule=rule), name, message, fidelity=fidelity)


@pytest.mark.parametrize("fidelity", [0, 1, np.float32(0.5), np.int64(1)], ids=repr)
def test_numbers_of_every_kind(fidelity: Any) -> None:
    model = fitted()
    model.remove([3], fidelity=fidelity)
    model.set_params(fidelity=fidelity).remove([5])
    model.check_state()
