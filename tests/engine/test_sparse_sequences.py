"""Models of sparse tables and of arrays stay identical through any sequence of updates."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.estimators.report import COUNTS
from graftboost.reference import UpdateRule

from .making import (
    LOSSES,
    RULES,
    counted,
    fit_bins,
    fit_engine_model,
    trees,
    update_engine_model,
)
from .sparse_tables import TRAINING, make_cells, make_data, make_target, sparse


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_columns", [255, 256, 257, 600])
def test_gain_bounds_do_not_affect_updates(loss: str, n_columns: int) -> None:
    """A copy made through bytes has no bounds, but its updates are the same."""
    data = make_data(n_columns, loss, n_rows=900, n_columns=n_columns, missing=True, busy=0.05)
    held = data.take(np.arange(600))
    training = {**TRAINING, "n_estimators": 4, "max_leaf_nodes": 10, "l2_regularization": 0.0}
    bins = fit_bins(sparse(held), rare_below=5)
    engine_model = fit_engine_model(sparse(held), bins, **training)
    dense = fit_engine_model(held, bins, **training)
    bare = fit_engine_model(sparse(held), bins, histogram_memory=0, **training)
    rng, first = np.random.default_rng(n_columns), 600
    for _ in range(12):
        copied = pickle.loads(pickle.dumps(engine_model))
        last = first + int(rng.integers(0, 12))
        out = rng.choice(engine_model.row_ids, rng.integers(1, 10), replace=False)
        into = data.take(np.arange(first, last))
        how = ("regret", rng.choice([0.1, 0.3, 1.2, 1e9])) if rng.random() < 0.7 else ("rank", 0.05)
        found = {
            counted(counts)
            for counts in (
                update_engine_model(engine_model, sparse(into), out, *how, places=2),
                update_engine_model(copied, sparse(into), out, *how, places=2),
                update_engine_model(dense, into, out, *how, places=2),
                update_engine_model(bare, sparse(into), out, *how, places=2),
            )
        }
        assert len(found) == 1, found
        expected = trees(engine_model)
        assert trees(copied) == expected
        assert trees(dense) == expected
        assert trees(bare) == expected
        first = last
    for each in (engine_model, copied, dense, bare):
        each.check_state(n_threads=1)


N_POOL = 150


def as_form(X: np.ndarray, form: str) -> Any:
    """The same table in another format; "messy" has unsorted columns, duplicates and zeros."""
    match form:
        case "dense":
            return X
        case "csc":
            return scipy.sparse.csc_matrix(X)
        case "messy":
            rows, columns = np.nonzero(X)
            values = X[rows, columns] / 2  # each value is stored in two halves
            zeros = np.zeros(len(X), dtype=X.dtype)
            order = np.random.default_rng(len(values)).permutation(2 * len(values) + len(X))
            parts = [
                np.concatenate([values, values, zeros])[order],
                np.concatenate([rows, rows, np.arange(len(X))])[order],
                np.concatenate([columns, columns, np.arange(len(X)) % X.shape[1]])[order],
            ]
            by_row = np.argsort(parts[1], kind="stable")
            begin = np.searchsorted(parts[1][by_row], np.arange(len(X) + 1))
            return scipy.sparse.csr_matrix((parts[0][by_row], parts[2][by_row], begin), X.shape)
        case _:
            return scipy.sparse.csr_array(X)


class Sequences(RuleBasedStateMachine):
    """The same updates of models of every kind, which stay identical."""

    columns = (3, 40)
    n_estimators = 3
    bytes_for: ClassVar[dict[str, float]] = {"bare": 0, "bare dense": 0.0, "tight": 5_000}

    @initialize(
        seed=st.integers(0, 100_000),
        loss=st.sampled_from(LOSSES),
        weighted=st.sampled_from(["no", "yes", "later"]),
        missing=st.booleans(),
        categories=st.booleans(),
        subsample=st.sampled_from([1.0, 0.7]),
        max_leaf_nodes=st.integers(2, 12),
        min_samples_leaf=st.integers(1, 12),
        l2_regularization=st.sampled_from([0.0, 0.5]),
        dtype=st.sampled_from([np.float32, np.float64]),
        n_fitted=st.integers(30, 100),
        unseen=st.booleans(),
        binning=st.sampled_from(["quantile", "width"]),
        data=st.data(),
    )
    def fit(
        self,
        seed: int,
        loss: str,
        weighted: str,
        missing: bool,
        categories: bool,
        subsample: float,
        max_leaf_nodes: int,
        min_samples_leaf: int,
        l2_regularization: float,
        dtype: Any,
        n_fitted: int,
        unseen: bool,
        binning: str,
        data: Any,
    ) -> None:
        self.rng = rng = np.random.default_rng(seed)
        n_columns = data.draw(st.integers(*self.columns))
        busy = 0.3 if n_columns < 100 else 0.05
        self.X = make_cells(rng, N_POOL, n_columns, missing, busy).astype(dtype)
        self.y: Any = make_target(rng, self.X, loss)
        if loss != "squared":
            self.y = np.array(["ash", "birch", "cedar"])[self.y.astype(int)]
        self.weight = rng.exponential(size=N_POOL) + (rng.random(N_POOL) < 0.8) - 0.3
        self.weight = self.weight.clip(0.0)
        self.weighted = weighted
        can_be_fitted = np.arange(N_POOL)
        if unseen and loss == "softmax":
            can_be_fitted = can_be_fitted[self.y != "birch"]
        first = can_be_fitted[:n_fitted]
        for label in np.unique(self.y[first]) if loss != "squared" else []:
            self.weight[first[self.y[first] == label][0]] = 1.0  # each class needs a weight
        self.weight[first[0]] = 2.0
        parameters: dict[str, Any] = {
            "n_estimators": self.n_estimators,
            "learning_rate": 0.3,
            "subsample": subsample,
            "max_leaf_nodes": max_leaf_nodes,
            "min_samples_leaf": min_samples_leaf,
            "l2_regularization": l2_regularization,
            "binning": binning,
            "max_bins": 64,
            "split_sample": 0.5,
            "categorical_features": [0, n_columns - 1] if categories else None,
            "n_jobs": 1,
        }
        Estimator = GraftBoostRegressor if loss == "squared" else GraftBoostClassifier
        self.forms = {"sparse": "csr", "dense": "dense", "bare": "csr", "bare dense": "dense"}
        self.forms["tight"] = "messy"
        weight = self.weight[first] if weighted == "yes" else None
        self.models = {
            name: Estimator(stats_memory=self.bytes_for.get(name), **parameters).fit(
                as_form(self.X[first], form), self.y[first], weight, row_ids=first
            )
            for name, form in self.forms.items()
        }
        self.held = set(first.tolist())

    def change(self, out: np.ndarray, into: np.ndarray, how: UpdateRule) -> None:
        """Make one update to all models, and compare what they report."""
        if len(out) >= len(self.held) + len(into):
            out = out[1:]
        if not len(out) and not len(into):
            return
        weighted = self.weighted == "yes" or (self.weighted == "later" and into.sum() % 4 == 0)
        reports = {}
        forms = {**self.forms, "tight": self.rng.choice(["dense", "csc", "messy"])}
        for name, model in self.models.items():
            model.set_params(
                update_rule=how.kind,
                tolerance=None if how.kind == "fidelity" else how.tolerance,
                fidelity=how.fidelity,
                memory_floor=how.memory_floor,
            )
            rows: dict[str, Any] = {}
            if len(into):
                rows["X"] = as_form(self.X[into], forms[name])
                rows["y"] = self.y[into]
                rows["sample_weight"] = self.weight[into] if weighted else None
                rows["row_ids"] = into
            reports[name] = model.update(**rows, remove=out)
        found = {
            name: tuple(getattr(report, field) for field in ("strategy", *COUNTS))
            for name, report in reports.items()
        }
        assert len(set(found.values())) == 1, found
        for report in reports.values():
            assert sorted(report.added_ids.tolist()) == sorted(into.tolist())
            assert sorted(report.removed_ids.tolist()) == sorted(out.tolist())
        self.held = self.held - set(out.tolist()) | set(into.tolist())

    def outside(self) -> np.ndarray:
        return self.rng.permutation(np.array(sorted(set(range(N_POOL)) - self.held), dtype=int))

    def inside(self) -> np.ndarray:
        return self.rng.permutation(np.array(sorted(self.held), dtype=int))

    @rule(n_out=st.integers(0, 10), n_in=st.integers(0, 10), how=RULES)
    def update(self, n_out: int, n_in: int, how: UpdateRule) -> None:
        out = self.inside()[: min(n_out, len(self.held) - 10)]
        self.change(out, self.outside()[:n_in], how)

    @rule(place=st.integers(0, 10_000), most=st.integers(1, 40), how=RULES)
    def add_rows_that_have_a_column(self, place: int, most: int, how: UpdateRule) -> None:
        column = self.X[:, place % self.X.shape[1]]
        into = self.outside()
        self.change(np.array([], dtype=int), into[column[into] != 0][:most], how)

    @rule(place=st.integers(0, 10_000), most=st.integers(1, 40), how=RULES)
    def remove_rows_that_have_a_column(self, place: int, most: int, how: UpdateRule) -> None:
        column = self.X[:, place % self.X.shape[1]]
        out = self.inside()
        out = out[column[out] != 0][: min(most, len(self.held) - 10)]
        self.change(out, np.array([], dtype=int), how)

    @rule()
    def refit(self) -> None:
        for model in self.models.values():
            model.refit()

    @rule()
    def refresh(self) -> None:
        for model in self.models.values():
            model.refresh()

    @rule(deep=st.booleans(), name=st.sampled_from(["sparse", "dense", "bare", "tight"]))
    def copy(self, deep: bool, name: str) -> None:
        model = self.models[name]
        self.models[name] = copy.deepcopy(model) if deep else pickle.loads(pickle.dumps(model))

    @precondition(lambda self: hasattr(self, "models"))
    @invariant()
    def are_the_same_model(self) -> None:
        dense = self.models["dense"]
        expected = dense._raw_scores(self.X)
        importances = dense.feature_importances_.tolist()
        table = scipy.sparse.csr_matrix(self.X)
        for model in self.models.values():
            assert model.feature_importances_.tolist() == importances
        for model in self.models.values():
            model.check_state()
            assert set(model.row_ids_.tolist()) == self.held
            assert np.array_equal(model._raw_scores(self.X), expected)
            assert np.array_equal(model._raw_scores(table), expected)
            assert trees(model._engine_model) == trees(dense._engine_model)


class WideSequences(Sequences):
    """The same with more columns than can have individual gain bounds."""

    columns = (257, 400)


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestWideSequences = WideSequences.TestCase
TestWideSequences.settings = settings(max_examples=8, stateful_step_count=12, deadline=None)
