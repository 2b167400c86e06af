"""Any sequence of deferred and ordinary updates, of regrows, refits and refreshes."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.estimators.report import UpdateReport

N_ROWS, N_ADDED = 120, 4
LOSSES = ["squared", "logistic", "softmax"]
LEAST_ROWS = 30
MAX_LEAVES = 6


def make_rows(seed: int, n_rows: int, loss: str, *, sparse: bool) -> tuple[Any, Any]:
    """Rows with wrong targets here and there, so that there is something to forget."""
    rng = np.random.default_rng(seed)
    X: Any = rng.normal(size=(n_rows, 4)).round(1)
    X[:, 3] = np.where(rng.random(n_rows) < 0.8, 0.0, X[:, 3])
    score = X[:, 0] + X[:, 1] * (X[:, 3] != 0) + rng.normal(size=n_rows)
    y = score if loss == "squared" else np.digitize(score, [0.0] if loss == "logistic" else [-1, 1])
    return scipy.sparse.csr_array(X) if sparse else X, y


def fit_model(loss: str, *, sparse: bool, weighted: bool, **parameters: Any) -> Any:
    X, y = make_rows(0, N_ROWS, loss, sparse=sparse)
    y[:3] = [0, 1, 2 if loss == "softmax" else 0]  # all classes occur
    weight = np.random.default_rng(1).uniform(0.5, 2, N_ROWS) if weighted else None
    Estimator = GraftBoostRegressor if loss == "squared" else GraftBoostClassifier
    small = {"n_estimators": 4, "min_samples_leaf": 3, "learning_rate": 0.3}
    return Estimator(**small, max_leaf_nodes=MAX_LEAVES, n_jobs=1, **parameters).fit(X, y, weight)


MODELS = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(LOSSES),
        "sparse": st.booleans(),
        "weighted": st.booleans(),
        "subsample": st.sampled_from([1.0, 0.7]),
        "stats_memory": st.sampled_from([None, 0.0]),
        "l2_regularization": st.sampled_from([0.0, 1.0]),
    }
)
Step = tuple[str, Any]
STEPS = st.one_of(
    st.tuples(st.sampled_from(["remove", "add", "update"]), st.booleans()),
    st.tuples(
        st.just("regrow"),
        st.fixed_dictionaries(
            {
                "work": st.sampled_from([None, 0.02, 0.2, 1.0]),
                "fidelity": st.sampled_from([None, 0.0, 0.5, 1.0]),
            }
        ),
    ),
    st.tuples(st.sampled_from(["refit", "refresh"]), st.none()),
)


def apply_step(model: Any, step: Step, seed: int, options: dict[str, Any]) -> UpdateReport | None:
    name, argument = step
    if name == "regrow":
        return model.regrow(**argument)
    if name in ("refit", "refresh"):
        getattr(model, name)()
        return None
    rng = np.random.default_rng(seed)
    X, y = make_rows(seed, N_ADDED, options["loss"], sparse=options["sparse"])
    weight = rng.uniform(0.5, 2, N_ADDED) if options["weighted"] else None
    n_removed = min(int(rng.choice([1, 3, 40])), max(0, model.n_rows_ - LEAST_ROWS))
    removed = rng.choice(np.sort(model.row_ids_), n_removed, replace=False)
    if name == "remove":
        return model.remove(removed, regrow=argument)
    if name == "add":
        return model.add(X, y, weight, regrow=argument)
    return model.update(X, y, weight, remove=removed, regrow=argument)


def state(model: Any) -> bytes:
    return pickle.dumps(model._engine_model)


def n_leaves(model: Any) -> list[int]:
    engine_model = model._engine_model
    return [int((engine_model.tree(t)["leaf"] >= 0).sum()) for t in range(engine_model.n_trees)]


def n_pending(model: Any) -> int:
    return model.pending_.rows_removed + model.pending_.rows_added


def reported(report: UpdateReport | None) -> Any:
    """Everything in a report that may not depend on time."""
    if report is None:
        return None
    content = {name: value for name, value in vars(report).items() if name != "seconds"}
    return {name: getattr(value, "tolist", lambda v=value: v)() for name, value in content.items()}


# A tree of three leaves gets a fourth.
@example(
    options={
        "loss": "softmax",
        "sparse": False,
        "weighted": False,
        "subsample": 0.7,
        "stats_memory": None,
        "l2_regularization": 0.0,
    },
    steps=[
        ("remove", False),
        ("refit", None),
        ("remove", True),
        ("add", False),
        ("regrow", {"work": None, "fidelity": None}),
    ],
)
@settings(max_examples=60, deadline=None)
@given(options=MODELS, steps=st.lists(STEPS, min_size=1, max_size=8))
def test_state_after_any_sequence(options: dict[str, Any], steps: list[Step]) -> None:
    model = fit_model(**options)
    probe, _ = make_rows(99, 40, options["loss"], sparse=options["sparse"])
    for seed, step in enumerate(steps):
        leaves, pending = n_leaves(model), n_pending(model)
        applied = model.apply(probe)
        report = apply_step(model, step, seed, options)
        model.check_state()
        before, predicted = state(model), model.predict(probe)
        now = model.pending_
        assert str(now)
        assert state(model) == before
        assert np.array_equal(model.predict(probe), predicted)
        assert np.isfinite(model.predict(probe)).all()
        if step[0] == "refit" or (report is not None and report.strategy == "refit"):
            assert n_pending(model) == 0
            continue
        # A tree that had no more candidates to split may find some, but none exceeds the limit.
        assert all(n <= MAX_LEAVES for n in n_leaves(model))
        if step[0] != "regrow" and not step[1]:
            assert n_leaves(model) == leaves
        if step[0] == "refresh":
            assert n_pending(model) == pending
            continue
        assert report is not None
        assert report.rows_deferred == n_pending(model)
        if step[0] == "regrow":
            assert report.rows_deferred in (0, pending)
        elif step[1]:
            assert report.rows_deferred == pending
        else:
            changed = len(report.added_ids) + len(report.removed_ids)
            assert report.rows_deferred == pending + changed
            assert (report.nodes_regrown, report.nodes_shifted) == (0, 0)
            assert np.array_equal(model.apply(probe), applied)


def save_and_load(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return graftboost.load(Path(folder) / "model")


COPIES: dict[str, Callable[[Any], Any]] = {
    "save": save_and_load,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("how", COPIES)
@settings(max_examples=15, deadline=None)
@given(options=MODELS, steps=st.lists(STEPS, min_size=2, max_size=6))
def test_copies_in_between_make_no_difference(
    how: str, options: dict[str, Any], steps: list[Step]
) -> None:
    model = fit_model(**options)
    copied = copy.deepcopy(model)
    for seed, step in enumerate(steps):
        expected = apply_step(model, step, seed, options)
        copied = COPIES[how](copied)
        assert copied.pending_ == COPIES[how](copied).pending_
        assert reported(apply_step(copied, step, seed, options)) == reported(expected)
        assert state(copied) == state(model)
        assert copied.pending_ == model.pending_


@settings(max_examples=30, deadline=None)
@given(options=MODELS, steps=st.lists(STEPS, min_size=2, max_size=6))
def test_threads_make_no_difference(options: dict[str, Any], steps: list[Step]) -> None:
    model = fit_model(**options)
    other = copy.deepcopy(model).set_params(n_jobs=3)
    for seed, step in enumerate(steps):
        expected = apply_step(model, step, seed, options)
        assert reported(apply_step(other, step, seed, options)) == reported(expected)
        assert other.pending_ == model.pending_
        assert state(other) == state(model)


@settings(max_examples=30, deadline=None)
@given(options=MODELS, steps=st.lists(STEPS, max_size=6))
def test_refit_gives_the_same_model_after_any_sequence(
    options: dict[str, Any], steps: list[Step]
) -> None:
    """As if the same updates had been made without deferral."""
    deferring, ordinary = fit_model(**options), fit_model(**options)
    for seed, (name, argument) in enumerate(steps):
        apply_step(deferring, (name, argument), seed, options)
        if name in ("add", "remove", "update"):
            apply_step(ordinary, (name, True), seed, options)
    probe, _ = make_rows(99, 40, options["loss"], sparse=options["sparse"])
    assert np.array_equal(deferring.refit().predict(probe), ordinary.refit().predict(probe))
    assert sorted(deferring.row_ids_) == sorted(ordinary.row_ids_)
    assert n_pending(deferring) == 0
