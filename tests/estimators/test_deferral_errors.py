"""Calls that cannot be deferred or regrown are refused and change nothing."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier

from .small_models import TARGETS, X, fitted

Y = TARGETS["two classes"]
CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda model, **how: model.add(X[:3], Y[:3], **how),
    "remove": lambda model, **how: model.remove([3, 5], **how),
    "update": lambda model, **how: model.update(X[:3], Y[:3], remove=[3, 5], **how),
    "an empty update": lambda model, **how: model.update(**how),
}


@pytest.fixture(params=["nothing pending", "pending"])
def model(request: Any) -> Any:
    made = fitted()
    if request.param == "pending":
        made.remove([7, 8], regrow=False)
    return made


def assert_refused(model: Any, call: Callable[[], Any], error: Any, message: str) -> None:
    """Check that a call raises an error and changes nothing."""
    before, predicted = pickle.dumps(model._engine_model), model.predict_proba(X)
    ids, next_id = model.row_ids_.tolist(), model._next_id
    with pytest.raises(error, match=message):
        call()
    assert pickle.dumps(model._engine_model) == before
    assert np.array_equal(model.predict_proba(X), predicted)
    assert (model.row_ids_.tolist(), model._next_id) == (ids, next_id)
    assert not model._update_lock.lock.locked()
    model.check_state()
    model.set_params(update_rule="fidelity", tolerance=None)
    assert model.regrow().rows_deferred == 0


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("regrow", [0, 1, None, "no", 0.0, [False], np.array([True])], ids=repr)
def test_regrow_that_is_not_a_boolean(model: Any, name: str, regrow: Any) -> None:
    message = f"regrow is of type {type(regrow).__name__}, but True or False is expected"
    assert_refused(model, lambda: CALLS[name](model, regrow=regrow), TypeError, message)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("rule", ["regret", "rank"])
def test_deferral_under_other_rules(model: Any, name: str, rule: str) -> None:
    model.set_params(update_rule=rule)
    message = f"regrow=False applies to update_rule='fidelity', but update_rule is '{rule}'"
    assert_refused(model, lambda: CALLS[name](model, regrow=False), ValueError, message)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("fidelity", [0.0, 0.5, 1])
def test_deferral_with_a_fidelity(model: Any, name: str, fidelity: float) -> None:
    call = lambda: CALLS[name](model, regrow=False, fidelity=fidelity)  # noqa: E731
    message = "fidelity is given with regrow=False, which only books the rows"
    assert_refused(model, call, ValueError, message)


@pytest.mark.parametrize(
    "work",
    [0, 0.0, -0.5, -math.inf, math.nan, True, False, np.True_, "0.05", "", [0.1], {}, 1j],
    ids=repr,
)
def test_invalid_work(model: Any, work: Any) -> None:
    message = "work is .*, but a positive number is expected: the fraction of the work of a refit"
    assert_refused(model, lambda: model.regrow(work), ValueError, message)


def test_work_beyond_any_float(model: Any) -> None:
    """It is no limit, or refused as others are."""
    other = copy.deepcopy(model)
    try:
        model.regrow(10**400)
    except ValueError:
        return
    other.regrow(math.inf)
    assert pickle.dumps(model._engine_model) == pickle.dumps(other._engine_model)


@pytest.mark.parametrize("fidelity", [-0.1, 1.1, math.nan, True, "0.5", [0.5]], ids=repr)
def test_invalid_fidelity(model: Any, fidelity: Any) -> None:
    message = "fidelity is .*, but a fraction is expected. Pass a number from 0 to 1"
    assert_refused(model, lambda: model.regrow(fidelity=fidelity), ValueError, message)


@pytest.mark.parametrize("rule", ["regret", "rank"])
def test_regrowing_under_other_rules(model: Any, rule: str) -> None:
    model.set_params(update_rule=rule)
    message = f"regrow applies to update_rule='fidelity', but update_rule is '{rule}'"
    assert_refused(model, model.regrow, ValueError, message)
    model.set_params(update_rule=rule)
    message = f"fidelity applies to update_rule='fidelity', but update_rule is '{rule}'"
    assert_refused(model, lambda: model.regrow(fidelity=0.5), ValueError, message)


def test_tolerance_does_not_apply(model: Any) -> None:
    model.set_params(tolerance=3.0)
    assert_refused(model, model.regrow, ValueError, "tolerance applies to update_rule='regret'")
    model.set_params(tolerance=3.0)
    assert_refused(model, lambda: model.pending_, ValueError, "tolerance applies to update_rule")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("n_jobs", 0), ("stats_memory", -1), ("fidelity", "low"), ("memory_floor", -1)],
)
def test_parameter_out_of_range(model: Any, parameter: str, value: Any) -> None:
    good = getattr(model, parameter)
    before = pickle.dumps(model._engine_model)
    model.set_params(**{parameter: value})
    with pytest.raises((TypeError, ValueError), match=parameter):
        model.regrow()
    with pytest.raises((TypeError, ValueError), match=parameter):
        model.remove([3], regrow=False)
    model.set_params(**{parameter: good})
    assert pickle.dumps(model._engine_model) == before
    model.check_state()


@pytest.mark.parametrize("row_ids", [[7, 7], [900], ["a"], [3, 4.5]], ids=repr)
def test_rows_that_cannot_be_removed(model: Any, row_ids: Any) -> None:
    call = lambda: model.remove(row_ids, regrow=False)  # noqa: E731
    assert_refused(model, call, (TypeError, ValueError), "row_ids")


def test_row_cannot_be_removed_twice(model: Any) -> None:
    model.remove([9], regrow=False)
    message = "row_ids contains 9, but the model holds no row with id 9|no row with id 9"
    assert_refused(model, lambda: model.remove([9], regrow=False), ValueError, message)


def test_model_that_is_not_fitted() -> None:
    model = GraftBoostClassifier()
    with pytest.raises(NotFittedError):
        model.regrow()
    with pytest.raises(NotFittedError):
        model.pending_  # noqa: B018
    assert not hasattr(model, "_engine_model")


def test_model_without_rows() -> None:
    model = GraftBoostClassifier(n_estimators=2, updatable=False).fit(X, Y)
    with pytest.raises(ValueError, match="This model holds no rows"):
        model.regrow()
    with pytest.raises(ValueError, match="This model holds no rows"):
        model.pending_  # noqa: B018
    with pytest.raises(ValueError, match="This model holds no rows"):
        model.remove([3], regrow=False)
