"""Adding rows to fitted estimators, and removing them."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor


@pytest.fixture
def binary():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture
def model(binary):
    return GraftBoostClassifier(n_estimators=10).fit(*binary)


def state_of(model):
    return pickle.dumps(model._engine_model)


# --- what an update does ------------------------------------------------------------------------


def test_remove_and_add_update_the_row_ids(binary, model):
    X, y = binary
    report = model.remove([3, 1, 400])
    assert report.strategy == "in-place"
    assert report.removed_ids.tolist() == [3, 1, 400]
    assert model.n_rows_ == 566
    assert not np.isin([1, 3, 400], model.row_ids_).any()
    model.check_state()
    report = model.add(X[[1, 3]], y[[1, 3]])
    assert report.added_ids.tolist() == [569, 570]
    model.check_state()


def test_adding_and_removing_rows_restores_the_model(binary):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=10, fidelity=0.0).fit(X[:500], y[:500])
    before = model.decision_function(X)
    ids = model.row_ids_
    report = model.add(X[500:], y[500:])
    assert report.nodes_regrown == 0
    assert not np.array_equal(model.decision_function(X), before)
    report = model.remove(report.added_ids)
    assert report.nodes_regrown == 0
    assert np.array_equal(model.decision_function(X), before)
    assert np.array_equal(np.sort(model.row_ids_), ids)
    model.check_state()


def test_update_adds_and_removes_in_one_pass(binary, model):
    X, y = binary
    report = model.update(X[:5], y[:5], remove=[10, 11], row_ids=[10, 1_000, 1_001, 1_002, 1_003])
    assert report.removed_ids.tolist() == [10, 11]
    assert 10 in model.row_ids_
    assert 11 not in model.row_ids_
    assert model.n_rows_ == 572
    model.check_state()


@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
def test_refit_equals_a_fit_of_the_held_rows(Estimator, binary):
    X, y = binary
    edges = [np.unique(np.quantile(column, [0.2, 0.4, 0.6, 0.8])).tolist() for column in X.T]
    ids = np.arange(len(y))
    model = Estimator(n_estimators=5, bin_edges=edges).fit(X, y)
    model.update(X[:20], y[:20], remove=slice(100, 300), row_ids=range(1_000, 1_020))
    model.refit()
    keep = (ids < 100) | (ids >= 300)
    fresh = clone(model).fit(
        np.vstack([X[keep], X[:20]]),
        np.concatenate([y[keep], y[:20]]),
        row_ids=np.concatenate([ids[keep], np.arange(1_000, 1_020)]),
    )
    predict = "decision_function" if Estimator is GraftBoostClassifier else "predict"
    assert np.array_equal(getattr(model, predict)(X), getattr(fresh, predict)(X))


def test_tolerance_zero_is_close_to_a_fresh_fit():
    """With tolerance 0, little remains of removed rows with wrong labels."""
    X, y = load_breast_cancer(return_X_y=True)
    wrong = np.arange(0, 569, 20)
    poisoned = y.copy()
    poisoned[wrong] = 1 - y[wrong]
    model = GraftBoostClassifier(n_estimators=30, update_rule="regret", tolerance=0.0)
    model.fit(X, poisoned)
    before = model.predict_proba(X)[wrong, poisoned[wrong]].mean()
    fresh = clone(model).fit(np.delete(X, wrong, axis=0), np.delete(y, wrong))
    target = fresh.predict_proba(X)[wrong, poisoned[wrong]].mean()
    model.remove(wrong)
    after = model.predict_proba(X)[wrong, poisoned[wrong]].mean()
    assert (before - after) / (before - target) > 0.8


@pytest.mark.parametrize("parameters", [{}, {"update_rule": "regret", "tolerance": 0.0}])
def test_large_updates_refit(binary, parameters):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=20, **parameters).fit(X, y)
    report = model.remove(np.arange(300))
    assert report.strategy == "refit"
    assert "refit" in str(report)
    model.check_state()


# --- arguments ----------------------------------------------------------------------------------


def test_ways_to_select_rows(binary):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=3).fit(X, y)
    assert model.remove(5).removed_ids.tolist() == [5]
    assert model.remove(slice(10, 13)).removed_ids.tolist() == [10, 11, 12]
    mask = model.row_ids_ >= 567
    assert sorted(model.remove(mask).removed_ids.tolist()) == [567, 568]
    assert model.remove([]).removed_ids.tolist() == []
    assert model.n_rows_ == 563
    model.check_state()


def test_frames_with_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"kind": pd.Categorical(rng.choice(list("abc"), 400)), "size": rng.normal(size=400)}
    )
    y = (frame["kind"] == "b") ^ (frame["size"] > 0)
    model = GraftBoostClassifier(n_estimators=10).fit(frame[:300], y[:300])
    model.add(frame[300:], y[300:])
    unseen = pd.DataFrame({"kind": pd.Categorical(["z", None]), "size": [0.0, np.nan]})
    model.add(unseen, [True, False])
    model.check_state()
    model.remove(model.row_ids_[-1])
    model.check_state()


def test_unseen_classes_are_added_by_a_refit():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "aster", "rose"])[y]
    known = y != 1
    model = GraftBoostClassifier(n_estimators=20, min_samples_leaf=5).fit(X[known], names[known])
    assert model.decision_function(X).ndim == 1
    report = model.add(X[~known], names[~known])
    assert report.strategy == "refit"
    assert model.classes_.tolist() == ["aster", "rose", "setosa"]
    assert model.score(X, names) > 0.95
    model.check_state()
    model.remove(model.row_ids_[names[model.row_ids_ % 150] == "rose"][:10])
    model.check_state()


def test_weights_first_given_in_an_update(binary):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=5).fit(X[:400], y[:400])
    assert model.add(X[400:], y[400:], sample_weight=np.full(169, 2.5)).strategy == "refit"
    assert model.remove([0, 450]).strategy == "in-place"
    model.check_state()


def test_partial_fit(binary):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=5)
    for begin in range(0, 569, 100):
        model.partial_fit(X[begin : begin + 100], y[begin : begin + 100], classes=[0, 1])
    assert model.n_rows_ == 569
    assert model.score(X, y) > 0.9
    model.check_state()


def test_class_whose_rows_are_all_removed():
    X, y = load_iris(return_X_y=True)
    model = GraftBoostClassifier(n_estimators=10, min_samples_leaf=5).fit(X, y)
    model.remove(np.flatnonzero(y == 2))
    model.check_state()
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X[y < 2]) == y[y < 2]).mean() > 0.95


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"remove": [7, 99_999]}, "remove: the model holds no row with id 99999"),
        ({"remove": [7, 7]}, "remove contains 7 more than once"),
        ({"remove": [0.5]}, "remove has dtype float64"),
        ({"remove": np.array([True, False])}, "remove is a mask of shape"),
        ({"remove": slice(0, 10, 2)}, "remove is a slice with step 2"),
        ({"remove": slice(None)}, "remove: these are all the rows"),
        ({"y": [1]}, "y is given without X"),
        ({"X": np.zeros((1, 30)), "y": [1], "row_ids": [5]}, "row_ids: the model already holds"),
        ({"X": np.zeros((2, 30)), "y": [1, 0], "row_ids": [900, 900]}, "row_ids contains 900"),
        ({"X": np.zeros((1, 7)), "y": [1]}, "7 features"),
        ({"X": np.zeros((1, 30)), "y": [1, 0]}, "y has 2 values"),
        ({"X": np.zeros((1, 30)), "y": [np.nan]}, "y contains NaN"),
        ({"X": np.full((1, 30), np.inf), "y": [1]}, "X: column 0 contains infinity"),
        ({"X": np.zeros((1, 30)), "y": [1], "sample_weight": [-1]}, "sample_weight is negative"),
        ({"X": np.zeros((1, 30)), "y": ["a"]}, "y contains a class of type str"),
    ],
)
def test_errors_leave_the_model_unchanged(model, binary, arguments, message):
    before = state_of(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.update(**arguments)
    assert state_of(model) == before
    model.check_state()


def test_target_outside_the_representable_range():
    X, y = load_diabetes(return_X_y=True)
    model = GraftBoostRegressor(n_estimators=5).fit(X, y)
    before = state_of(model)
    with pytest.raises(ValueError, match=r"y: a value lies too far"):
        model.add(X[:1], [1e9])
    assert state_of(model) == before


def test_models_that_are_not_updatable(binary):
    model = GraftBoostClassifier(n_estimators=3, updatable=False).fit(*binary)
    with pytest.raises(ValueError, match="updatable=False"):
        model.remove([0])
    with pytest.raises(ValueError, match="updatable=False"):
        model.refit()
    assert not hasattr(model, "partial_fit")


# --- several threads ----------------------------------------------------------------------------


def test_predictions_are_those_before_or_after_an_update(binary):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=10, n_jobs=1).fit(X, y)
    states = [model.decision_function(X)]
    seen = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            seen.append(model.decision_function(X))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for row in range(30):
        model.remove(row)
        states.append(model.decision_function(X))
    done.set()
    watcher.join()
    known = {state.tobytes() for state in states}
    assert all(scores.tobytes() in known for scores in seen)


def test_concurrent_updates_run_one_after_the_other(binary):
    X, y = binary
    model = GraftBoostClassifier(n_estimators=10, n_jobs=1).fit(X, y)
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(model.remove, range(40)))
    assert sorted(int(report.removed_ids[0]) for report in reports) == list(range(40))
    assert np.array_equal(np.sort(model.row_ids_), np.arange(40, 569))
    model.check_state()


# --- any sequence of updates --------------------------------------------------------------------


class Updates(RuleBasedStateMachine):
    """Random updates of a small model, whose state is checked after each."""

    @initialize(
        seed=st.integers(0, 1_000),
        loss=st.sampled_from(["binary", "multiclass", "regression"]),
        weighted=st.booleans(),
        subsample=st.sampled_from([1.0, 0.7]),
        max_leaf_nodes=st.integers(2, 12),
        min_samples_leaf=st.integers(1, 8),
    )
    def fit(self, seed, loss, weighted, subsample, max_leaf_nodes, min_samples_leaf):
        self.rng = np.random.default_rng(seed)
        n = 120
        X = self.rng.normal(size=(n, 4)).round(1)
        X[:, 1] = self.rng.integers(0, 4, n)
        X[self.rng.random(X.shape) < 0.1] = np.nan
        signal = np.nan_to_num(X[:, 0]) + self.rng.normal(scale=0.5, size=n)
        Estimator = GraftBoostRegressor if loss == "regression" else GraftBoostClassifier
        n_classes = {"binary": 2, "multiclass": 3}.get(loss, 0)
        if n_classes:
            cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
            signal = np.searchsorted(cuts, signal)
        self.X, self.y = X, signal
        self.weight = self.rng.exponential(size=n) + 0.1 if weighted else None
        self.model = Estimator(
            n_estimators=4,
            learning_rate=0.3,
            subsample=subsample,
            max_leaf_nodes=max_leaf_nodes,
            min_samples_leaf=min_samples_leaf,
            categorical_features=[1],
            n_jobs=1,
        )
        first = np.arange(0, n, 2)
        weight = None if self.weight is None else self.weight[first]
        self.model.fit(X[first], signal[first], weight, row_ids=first)
        self.held = set(first.tolist())

    @rule(
        n_out=st.integers(0, 12),
        n_in=st.integers(0, 12),
        parameters=st.one_of(
            st.fixed_dictionaries(
                {
                    "update_rule": st.just("fidelity"),
                    "tolerance": st.none(),
                    "fidelity": st.sampled_from([0.0, 0.5, 0.75, 1.0]),
                    "memory_floor": st.sampled_from([0.0, 0.02, 1.0]),
                }
            ),
            st.fixed_dictionaries(
                {
                    "update_rule": st.just("regret"),
                    "tolerance": st.sampled_from([None, 0.0, 0.1, 1.0, 1e9]),
                }
            ),
            st.fixed_dictionaries(
                {
                    "update_rule": st.just("rank"),
                    "tolerance": st.sampled_from([None, 0.0, 0.1, 1.0]),
                }
            ),
        ),
    )
    def update(self, n_out, n_in, parameters):
        self.model.set_params(**parameters)
        out = self.rng.permutation(sorted(self.held))[: min(n_out, len(self.held) - 1)]
        free = np.array(sorted(set(range(120)) - self.held), dtype=int)
        into = self.rng.permutation(free)[:n_in]
        if not len(into) and not len(out):
            return
        rows = {}
        if len(into):
            weight = None if self.weight is None else self.weight[into]
            rows = {"X": self.X[into], "y": self.y[into], "sample_weight": weight, "row_ids": into}
        self.model.update(**rows, remove=out)
        self.held = self.held - set(out.tolist()) | set(into.tolist())

    @rule()
    def refit(self):
        self.model.refit()

    @rule()
    def refresh(self):
        self.model.refresh()

    @rule()
    def copy(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def holds_the_rows_and_their_sums(self):
        self.model.check_state()
        assert set(self.model.row_ids_.tolist()) == self.held
        sizes = [
            len(self.model._engine_model.tree(t)["leaf"])
            for t in range(self.model._engine_model.n_trees)
        ]
        assert max(sizes) <= 2 * self.model.max_leaf_nodes - 1
        assert np.isfinite(self.model.predict(self.X).astype(float)).all()


TestUpdates = Updates.TestCase
TestUpdates.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
