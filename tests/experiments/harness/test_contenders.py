"""Contenders learn their present rows, each in its own way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.settings import Settings
from benchmarks.updates.learners import TOLERANT
from datasets import Task
from experiments.harness.contenders import CONTENDERS, NAMES, Contender
from experiments.harness.contenders.ours import Tolerant

SETTINGS = Settings(leaves=8, iterations=15, min_rows=5, threads=1)
N_ROWS, N_CLASSES = 400, 3
OURS = ["graftboost", "paper", "predecessor", "untouched"]


def _rows(task: Task, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 4)).astype(np.float32)
    score = X[:, 0] + rng.normal(scale=0.2, size=N_ROWS)
    if task == "regression":
        return X, score.astype(np.float64)
    return X, np.digitize(score, [-0.5, 0.5]).astype(np.int64)


def _new(name: str, task: Task = "classification") -> Contender:
    kind = CONTENDERS[name]
    if not kind.available():
        pytest.skip(f"{kind.library.title} is not installed")
    return kind(task, SETTINGS)


def _error(contender: Contender, X: Any, y: Any) -> float:
    predicted = contender.predict(X)
    if contender.task == "regression":
        return float(np.mean((predicted - y) ** 2) / np.var(y))
    assert predicted.shape == (len(y), N_CLASSES)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-5)
    return float(np.mean(predicted.argmax(axis=1) != y))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", NAMES)
def test_each_contender_learns_and_is_updated(name: str, task: Task) -> None:
    X, y = _rows(task)
    unseen, targets = _rows(task, seed=1)
    contender = _new(name, task).fit(X[:300], y[:300])
    assert contender.seconds > 0
    assert _error(contender, unseen, targets) < 0.35
    before = contender.predict(unseen)

    updated = contender.fork(spare=299)
    updated.remove(np.arange(40))
    updated.add(X[300:], y[300:])
    updated.remove([300, 301])  # added rows are placed after the others
    assert _error(updated, unseen, targets) < 0.35
    # A fork is a copy, and only the control is not updated.
    np.testing.assert_array_equal(contender.predict(unseen), before)
    assert np.array_equal(updated.predict(unseen), before) == (name == "untouched")

    updated.retrain()
    assert _error(updated, unseen, targets) < 0.35


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OURS])
def test_class_added_after_the_fit(name: str) -> None:
    X, y = _rows("classification")
    without = y != 1
    contender = _new(name).fit(X[without], y[without])
    assert np.all(contender.predict(X)[:, 1] == 0)
    contender.add(X[~without], y[~without])
    assert _error(contender, X, y) < (0.5 if name == "sisa" else 0.25)


def test_the_settings_of_ours() -> None:
    rules = {name: _new(name).model.get_params() for name in OURS}
    assert rules["graftboost"]["update_rule"] == rules["untouched"]["update_rule"] == "fidelity"
    assert {name: (rules[name]["update_rule"], rules[name]["tolerance"]) for name in OURS[1:3]} == {
        "paper": ("rank", 0.1),
        "predecessor": ("rank", 0.0),
    }
    tolerant = Tolerant("classification", SETTINGS).model
    assert (tolerant.update_rule, tolerant.tolerance) == ("regret", TOLERANT)


def test_a_refit_of_ours_is_counted() -> None:
    X, y = _rows("classification")
    contender = _new("graftboost").fit(X, y)
    contender.remove(np.arange(300))  # more than a quarter of the rows
    assert contender.refits == 1


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_a_retrained_library_uses_only_the_remaining_rows(name: str) -> None:
    X, y = _rows("classification")
    updated = _new(name).fit(X, y)
    updated.remove(np.arange(100))
    fitted = _new(name).fit(X[100:], y[100:])
    np.testing.assert_array_equal(updated.predict(X), fitted.predict(X))


def test_lightgbm_refit_keeps_the_trees() -> None:
    X, y = _rows("classification")
    contender = _new("lightgbm-refit").fit(X, y)
    before, splits = contender.predict(X), _lightgbm_splits(contender.booster)
    same = contender.fork()
    same._follow()
    np.testing.assert_allclose(same.predict(X), before, atol=1e-9)  # the same rows, the same leaves
    contender.remove(np.arange(200))
    assert _lightgbm_splits(contender.booster) == splits
    assert not np.allclose(contender.predict(X), before, atol=1e-3)
    contender.retrain()
    assert _lightgbm_splits(contender.booster) != splits


def _lightgbm_splits(booster: Any) -> Any:
    frame = booster.trees_to_dataframe()
    return frame[["node_index", "split_feature", "threshold"]].astype(str).to_numpy().tolist()


def test_xgboost_refresh_keeps_the_trees() -> None:
    X, y = _rows("classification")
    contender = _new("xgboost-refresh").fit(X, y)
    before, splits = contender.predict(X), _xgboost_splits(contender.booster)
    same = contender.fork()
    same._follow()
    np.testing.assert_allclose(same.predict(X), before, atol=1e-5)
    contender.remove(np.arange(200))
    assert _xgboost_splits(contender.booster) == splits
    assert not np.allclose(contender.predict(X), before, atol=1e-3)


def _xgboost_splits(booster: Any) -> Any:
    frame = booster.trees_to_dataframe()
    return frame[["ID", "Feature", "Split"]].astype(str).to_numpy().tolist()


def test_sisa_trains_only_the_shards_that_change() -> None:
    X, y = _rows("classification")
    contender = _new("sisa").fit(X, y)
    assert contender.retrained == [0, 1, 2, 3, 4]
    assert max(contender.sizes()) - min(contender.sizes()) <= 1
    trained, shard = list(contender._shards), int(contender._shard_of[7])
    contender.remove(7)
    assert contender.retrained == [shard]
    kept = [a is b for a, b in zip(trained, contender._shards, strict=True)]
    assert kept == [other != shard for other in range(5)]

    contender.add(X[:1], y[:1])  # to the shard that has one row less
    assert contender.retrained == [shard]
    assert sum(contender.sizes()) == N_ROWS


def test_sisa_update_equals_a_retrain() -> None:
    X, y = _rows("classification")
    contender = _new("sisa").fit(X, y)
    contender.remove(np.arange(3))
    updated = contender.predict(X)
    contender.retrain()
    np.testing.assert_array_equal(contender.predict(X), updated)


def test_a_row_can_be_removed_only_once() -> None:
    X, y = _rows("classification")
    contender = _new("sklearn").fit(X, y)
    contender.remove([1, 2])
    with pytest.raises(ValueError, match="row 2 was removed before"):
        contender.remove([2, 3])
