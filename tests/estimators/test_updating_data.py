"""Updates with every kind of table, of every kind of model."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from graftboost import GraftBoostClassifier, GraftBoostRegressor

# --- tables -------------------------------------------------------------------------------------

KINDS = ["ash", "birch", "cedar"]


def make_columns(rng, n_rows, kinds=KINDS, spread=1.0):
    """Columns of four types, with missing values where that is possible."""
    kind = rng.choice(kinds, n_rows).astype(object)
    kind[rng.random(n_rows) < 0.1] = None
    height = spread * rng.normal(size=n_rows)
    height[rng.random(n_rows) < 0.1] = np.nan
    return {
        "kind": kind,
        "height": height,
        "rings": rng.integers(0, 50, n_rows),
        "felled": rng.random(n_rows) < 0.5,
    }


def to_pandas(columns):
    return pd.DataFrame({**columns, "kind": pd.Categorical(columns["kind"])})


def to_polars(columns):
    kind = pl.Series(columns["kind"].tolist(), dtype=pl.Categorical)
    height = pl.Series(columns["height"]).fill_nan(None)
    return pl.DataFrame({**columns, "kind": kind, "height": height})


def to_pyarrow(columns):
    kind = pa.array(columns["kind"].tolist()).dictionary_encode()
    height = pa.array(columns["height"], from_pandas=True)
    return pa.table({**columns, "kind": kind, "height": height})


def to_numpy(columns):
    """The kinds as numbers, in their order; unknown kinds have the number 7."""
    code = {None: np.nan, **{kind: i for i, kind in enumerate(KINDS)}}
    kind = [code.get(value, 7) for value in columns["kind"]]
    return np.column_stack([kind, columns["height"], columns["rings"], columns["felled"]]).astype(
        np.float64
    )


TABLES = {"numpy": to_numpy, "pandas": to_pandas, "polars": to_polars, "pyarrow": to_pyarrow}


def follow(make_first, *make_others):
    """Fit a model to one kind of table, and update it with others in turn."""
    rng = np.random.default_rng(0)
    columns = make_columns(rng, 300)
    target = np.nan_to_num(columns["height"]) + (columns["kind"] == "birch") > 0
    categorical = [0] if make_first is to_numpy else "from_dtype"
    model = GraftBoostClassifier(n_estimators=5, categorical_features=categorical, n_jobs=1)
    model.fit(make_first(columns), target)
    for turn, make in enumerate(make_others):
        # Unseen kinds, and heights far outside the range in fit.
        columns = make_columns(rng, 20, [*KINDS, "yew"], spread=[1.0, 1e6][turn % 2])
        model.update(make(columns), rng.random(20) < 0.5, remove=model.row_ids_[turn::40])
        model.check_state()
    return model


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_all_kinds_of_tables_give_the_same_model(make, assert_same_model):
    assert_same_model(follow(make, *[make] * 4), follow(to_pandas, *[to_pandas] * 4))


def test_kinds_of_tables_can_be_mixed(assert_same_model):
    mixed = follow(to_polars, to_pandas, to_pyarrow, to_polars, to_pyarrow)
    assert_same_model(mixed, follow(to_pandas, *[to_pandas] * 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_another_dtype(dtype, rng, assert_same_model):
    """Whole numbers are the same in every dtype, so the models are the same too."""
    X = rng.integers(0, 100, size=(200, 3))
    y = (X[:, 0] > 50).astype(int)
    model, other = (GraftBoostClassifier(n_estimators=3).fit(X[:150], y[:150]) for _ in range(2))
    model.add(X[150:].astype(dtype), y[150:])
    other.add(np.asfortranarray(X[150:]), y[150:].tolist())
    assert_same_model(model, other)


@pytest.mark.parametrize("make", [to_pandas, to_polars, to_pyarrow])
def test_columns_must_be_those_of_fit(make):
    model = follow(make)
    before = pickle.dumps(model._engine_model)
    columns = make_columns(np.random.default_rng(1), 5)
    wrong = {
        "must be in the same order": ["height", "kind", "rings", "felled"],
        "yet now missing:\n- felled": ["kind", "height", "rings"],
    }
    for message, names in wrong.items():
        table = make(columns)
        with pytest.raises(ValueError, match=message):
            model.add(table.select(names) if make is to_pyarrow else table[names], [True] * 5)
    assert pickle.dumps(model._engine_model) == before


@pytest.mark.parametrize(
    "as_ids", [list, tuple, np.array, pd.Series, pl.Series, pa.array, pd.Index]
)
def test_ids_in_any_kind_of_sequence(as_ids):
    model = follow(to_pandas)
    assert model.remove(as_ids([5, 3])).removed_ids.tolist() == [5, 3]
    rows = to_pandas(make_columns(np.random.default_rng(1), 2))
    assert model.add(rows, [True, False], row_ids=as_ids([3, 5])).added_ids.tolist() == [3, 5]
    mask = np.isin(model.row_ids_, [3, 8])
    assert sorted(model.remove(as_ids(mask.tolist())).removed_ids.tolist()) == [3, 8]
    model.check_state()


# --- models -------------------------------------------------------------------------------------

N_ROWS = 240
X = np.random.default_rng(0).normal(size=(N_ROWS, 4)).round(2)
X[::9, 1] = np.nan
SIGNAL = X[:, 0] + 0.3 * X[:, 2]
TARGETS = {
    "regression": 20 * SIGNAL + 5,
    "two classes": np.where(SIGNAL > 0, "yes", "no"),
    "three classes": np.digitize(SIGNAL, [-0.5, 0.5]),
}
WEIGHT = np.random.default_rng(1).exponential(size=N_ROWS)
WEIGHT[::17] = 0
EDGES = [np.linspace(-2, 2, 33).tolist()] * 4
IDS = np.random.default_rng(2).permutation(10 * N_ROWS)[:N_ROWS]

KINDS_OF_MODELS = {
    "plain": {},
    "subsample": {"subsample": 0.6},
    "weights": {"weighted": True},
    "weights and subsample": {"weighted": True, "subsample": 0.6},
    "class weights": {"class_weight": {"no": 1.0, "yes": 3.0, 0: 1.0, 1: 2.0, 2: 0.25}},
    "balanced": {"class_weight": "balanced", "weighted": True},
    "early stopping": {"early_stopping": True, "n_iter_no_change": 2, "n_estimators": 60},
}
RULES = {
    "fidelity": {},
    "fidelity 1": {"fidelity": 1.0, "memory_floor": 0.0},
    "regret": {"update_rule": "regret", "tolerance": 1.0},
    "regret 0": {"update_rule": "regret", "tolerance": 0.0},
}


def make_model(target, weighted=False, **parameters):
    """Return a model that is not fitted, and the weights to fit it with."""
    if target == "regression":
        parameters.pop("class_weight", None)
    settings = {"n_estimators": 6, "min_samples_leaf": 4, "n_jobs": 1, "bin_edges": EDGES}
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    return Estimator(**{**settings, **parameters}), WEIGHT if weighted else None


def some(values, rows):
    return None if values is None else values[rows]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parameters", KINDS_OF_MODELS.values(), ids=KINDS_OF_MODELS)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_kind_of_model_has_a_valid_state_after_updates(target, parameters, rule):
    y = TARGETS[target]
    model, weight = make_model(target, **rule, **parameters)
    first, later = np.arange(180), np.arange(180, N_ROWS)
    model.fit(X[first], y[first], some(weight, first), row_ids=IDS[first])
    n_iter = model.n_iter_
    held = set(model.row_ids_.tolist())
    for step in range(4):
        into = later[step::4]
        out = model.row_ids_[step::30]
        model.update(X[into], y[into], some(weight, into), row_ids=IDS[into], remove=out)
        held = held - set(out.tolist()) | set(IDS[into].tolist())
        model.check_state()
        assert set(model.row_ids_.tolist()) == held
        assert model.n_iter_ == n_iter
    assert np.isfinite(model._raw_scores(X)).all()
    model.refit()
    model.check_state()
    assert model.n_iter_ == n_iter


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "name", ["plain", "subsample", "weights", "weights and subsample", "class weights"]
)
def test_refit_equals_a_fit_of_all_rows(target, name):
    """Values, weights, class weights and subsamples of added rows are all kept."""
    y = TARGETS[target]
    model, weight = make_model(target, **KINDS_OF_MODELS[name])
    rows = np.arange(180)
    model.fit(X[rows], y[rows], some(weight, rows), row_ids=IDS[rows])
    for begin in range(180, N_ROWS, 20):
        into = np.arange(begin, begin + 20)
        model.update(
            X[into], y[into], some(weight, into), row_ids=IDS[into], remove=IDS[into - 180]
        )
    model.refit()
    held = np.arange(60, N_ROWS)
    fresh = clone(model).fit(X[held], y[held], some(weight, held), row_ids=IDS[held])
    assert np.array_equal(model._raw_scores(X), fresh._raw_scores(X))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parameters", KINDS_OF_MODELS.values(), ids=KINDS_OF_MODELS)
def test_adding_and_removing_rows_restores_the_scores(target, parameters):
    y = TARGETS[target]
    model, weight = make_model(target, fidelity=0.0, **parameters)
    first, later = np.arange(200), np.arange(200, N_ROWS)
    model.fit(X[first], y[first], some(weight, first), row_ids=IDS[first])
    before, rows_before = model._raw_scores(X), sorted(model.row_ids_.tolist())
    reports = [
        model.add(X[later], y[later], some(weight, later), row_ids=IDS[later]),
        model.remove(IDS[later]),
    ]
    assert sorted(model.row_ids_.tolist()) == rows_before
    if all(report.nodes_regrown == 0 for report in reports):
        assert np.array_equal(model._raw_scores(X), before)
    else:
        model.refit()
        assert np.array_equal(model._raw_scores(X), before)


def test_validation_rows_are_not_held(rng):
    for early_stopping in (False, True):
        model = GraftBoostRegressor(n_estimators=5, early_stopping=early_stopping)
        y = TARGETS["regression"]
        model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
        losses = model.validation_losses_
        assert model.n_rows_ == 200
        with pytest.raises(ValueError, match="holds no row with id 200"):
            model.remove([200])
        model.update(X[200:], y[200:], remove=range(20))
        np.testing.assert_array_equal(model.validation_losses_, losses)  # those of fit
        model.check_state()


def test_new_ids_follow_those_of_held_out_rows():
    y = TARGETS["regression"]
    for seed in range(30):  # some of which hold out the last row
        model = GraftBoostRegressor(n_estimators=1, early_stopping=True, random_state=seed)
        assert model.fit(X, y).add(X[:2], y[:2]).added_ids.tolist() == [N_ROWS, N_ROWS + 1]


# --- subsamples ---------------------------------------------------------------------------------


def trees_with(model, row):
    """Return the trees whose subsamples include a row, which is removed and added again."""
    counts = lambda: np.array([model._engine_model.tree(t)["n"][0] for t in range(8)])  # noqa: E731
    before = counts()
    model.remove(row)
    after = counts()
    model.add(X[[row]], TARGETS["regression"][[row]], row_ids=[row])
    assert np.array_equal(counts(), before)
    return (before - after).tolist()


def test_a_row_is_always_in_the_subsamples_of_the_same_trees():
    model, _ = make_model("regression", subsample=0.5, n_estimators=8)
    model.fit(X[:200], TARGETS["regression"][:200])
    drawn = [trees_with(model, row) for row in range(10)]
    assert {drawn_for for row in drawn for drawn_for in row} == {0, 1}
    assert len({tuple(row) for row in drawn}) > 5
    model.remove(range(50, 80))
    model.add(X[200:], TARGETS["regression"][200:])
    model = pickle.loads(pickle.dumps(model))
    assert [trees_with(model, row) for row in range(10)] == drawn
    model.refit()
    assert [trees_with(model, row) for row in range(10)] == drawn


# --- classes ------------------------------------------------------------------------------------


def test_classes_added_later_have_their_class_weight():
    y = TARGETS["three classes"]
    model = GraftBoostClassifier(
        n_estimators=5, class_weight={0: 1.0, 1: 2.0, 2: 5.0}, bin_edges=EDGES, min_samples_leaf=4
    )
    known = np.flatnonzero(y < 2)
    model.fit(X[known], y[known], row_ids=known)
    unseen = np.flatnonzero(y == 2)
    model.add(X[unseen], y[unseen], row_ids=unseen)
    assert np.array_equal(
        model.predict_proba(X), clone(model).fit(X, y, row_ids=range(N_ROWS)).predict_proba(X)
    )


@pytest.mark.parametrize(
    ("labels", "unseen", "expected"),
    [
        ([0, 1], 2, [0, 1, 2]),
        ([0, 2], 1, [0, 1, 2]),
        ([1.0, 2.0], 0.0, [0.0, 1.0, 2.0]),
        (["b", "d"], "a much longer name", ["a much longer name", "b", "d"]),
        ([False, True], 2, [0, 1, 2]),
    ],
)
def test_classes_stay_sorted(labels, unseen, expected):
    y = np.array(labels)[(SIGNAL > 0).astype(int)]
    model = GraftBoostClassifier(n_estimators=5, min_samples_leaf=4).fit(X, y)
    far = np.full((30, 4), 9.0)
    model.add(far, [unseen] * 30)
    assert model.classes_.tolist() == expected
    assert model.predict(far).tolist() == [unseen] * 30
    assert (model.predict(X) == y).mean() > 0.9
    assert model.predict_proba(X).shape == (N_ROWS, 3)
    model.check_state()
