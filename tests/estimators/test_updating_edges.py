"""Updates at the edges of what there is, and updates that are refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier, GraftBoostRegressor

N_ROWS = 200
X = np.random.default_rng(0).normal(size=(N_ROWS, 3)).round(2)
TARGETS = {
    "regression": 10 * X[:, 0],
    "two classes": (X[:, 0] + X[:, 1] > 0).astype(int),
    "three classes": np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7]),
}
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES)
LEAST_ID, LARGEST_ID = -(2**63), 2**63 - 1


def fitted(target="two classes", **parameters):
    settings = {"n_estimators": 5, "min_samples_leaf": 4, "n_jobs": 1, **parameters}
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    return Estimator(**settings).fit(X, TARGETS[target])


# --- few rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "n_left"),
    [("two classes", 1), ("three classes", 1), ("three classes", 2), ("regression", 7)],
)
def test_few_rows_are_left_and_the_others_come_back(target, n_left, assert_same_model):
    model = fitted(target)
    whole = fitted(target)
    model.remove(slice(n_left, None))
    assert model.row_ids_.tolist() == list(range(n_left))
    model.check_state()
    assert np.isfinite(model._raw_scores(X)).all()
    model.add(X[n_left:], TARGETS[target][n_left:], row_ids=range(n_left, N_ROWS))
    assert_same_model(model, whole)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tolerance", [0.0, 1e12])
@pytest.mark.parametrize("subsample", [0.5, 1.0])
def test_a_model_shrinks_row_by_row(target, tolerance, subsample):
    model = fitted(target, tolerance=tolerance, subsample=subsample, min_samples_leaf=6)
    for row in range(N_ROWS - 1):
        model.remove(row)
        if row % 10 and row < N_ROWS - 10:
            continue
        model.check_state()
        assert np.isfinite(model._raw_scores(X)).all()
        for t in range(model._engine_model.n_trees):
            tree = model._engine_model.tree(t)
            assert len(tree["n"]) == 1 or tree["n"].min() >= 6
    with pytest.raises(ValueError, match=r"row_ids: these are all the rows .* or fit anew"):
        model.remove(N_ROWS - 1)
    assert model.row_ids_.tolist() == [N_ROWS - 1]
    # The last one may go if another comes.
    model.update(X[:1], TARGETS[target][:1], remove=[N_ROWS - 1])
    assert model.row_ids_.tolist() == [N_ROWS]
    model.check_state()


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_may_start_with_few_rows(target):
    y = TARGETS[target]
    few = np.unique(y, return_index=True)[1][:3]
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    model = Estimator(n_estimators=5, bin_edges=[np.linspace(-2, 2, 21).tolist()] * 3)
    model.fit(X[few], y[few], row_ids=few)
    for row in np.setdiff1d(np.arange(N_ROWS), few):
        model.add(X[[row]], y[[row]], row_ids=[row])
        if row % 20 == 0:
            model.check_state()
    whole = clone(model).fit(X, y)
    assert model.n_rows_ == N_ROWS
    assert np.array_equal(model.refit()._raw_scores(X), whole._raw_scores(X))


@pytest.mark.parametrize("in_steps", [False, True])
def test_a_class_goes_and_comes_back(in_steps):
    y = TARGETS["three classes"]
    model = fitted("three classes")
    gone = np.flatnonzero(y == 1)
    for rows in gone[:, np.newaxis] if in_steps else [gone]:
        model.remove(rows)
    model.check_state()
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X)[:, 1].max() < 0.05
    for rows in gone[:, np.newaxis] if in_steps else [gone]:
        model.add(X[rows], y[rows], row_ids=rows)
    model.check_state()
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == y).mean() > 0.85
    assert np.array_equal(model.refit().predict_proba(X), fitted("three classes").predict_proba(X))


def test_all_classes_but_one_go():
    y = TARGETS["two classes"]
    model = fitted()
    model.remove(np.flatnonzero(y == 1))
    model.check_state()
    assert model.predict(X).tolist() == [0] * N_ROWS
    model.add(X[y == 1], y[y == 1])
    model.check_state()
    assert (model.predict(X) == y).mean() > 0.85


def test_rows_of_no_weight_come_and_go():
    y = TARGETS["regression"]
    weight = np.ones(N_ROWS)
    weight[:50] = 0
    model = GraftBoostRegressor(n_estimators=5, tolerance=0.0).fit(X, y, weight)
    before = model.predict(X)
    for _ in range(3):
        removed = model.remove(model.row_ids_[model.row_ids_ < 20][:10]).removed_ids
        model.add(X[:10], y[:10] + 5, np.zeros(10), row_ids=removed)
        assert np.array_equal(model.predict(X), before)
        model.check_state()


# --- no rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        (),
        range(0),
        np.empty(0),
        np.empty(0, dtype=np.uint64),
        pd.Series([], dtype="int64"),
        pl.Series([], dtype=pl.Int64),
        np.zeros(N_ROWS, dtype=bool),
        slice(500, 600),
        slice(7, 7),
        slice(2**70, None),
    ],
)
def test_removing_no_row_is_no_change(nothing):
    model = fitted()
    before = pickle.dumps(model)
    report = model.remove(nothing)
    assert (len(report.removed_ids), report.trees_touched, model.n_rows_) == (0, 0, N_ROWS)
    assert pickle.dumps(model) == before
    assert model.update(X[:1], [1], remove=nothing).added_ids.tolist() == [N_ROWS]


def test_an_update_of_nothing_is_no_change():
    model = fitted()
    before = pickle.dumps(model)
    assert "0 rows added, 0 removed" in str(model.update())
    assert pickle.dumps(model) == before


# --- ids ----------------------------------------------------------------------------------------


def test_slices_and_masks_name_ids():
    ids = np.random.default_rng(0).permutation(N_ROWS) - 50
    y = TARGETS["regression"]
    model = GraftBoostRegressor(n_estimators=3).fit(X, y, row_ids=ids)
    assert model.remove(slice(-50, -45)).removed_ids.tolist() == [-50, -49, -48, -47, -46]
    assert model.remove(slice(None, -40)).removed_ids.tolist() == [-45, -44, -43, -42, -41]
    assert model.remove(slice(np.int64(148), None)).removed_ids.tolist() == [148, 149]
    assert set(model.remove(model.row_ids_ % 50 == 0).removed_ids.tolist()) == {0, 50, 100}
    first = model.row_ids_[:3].tolist()
    mask = [True] * 3 + [False] * (model.n_rows_ - 3)
    assert model.remove(mask).removed_ids.tolist() == first
    model.check_state()


def test_ids_at_the_ends_of_their_range():
    model = fitted()
    ids = [LEAST_ID, LARGEST_ID, -1, 2**32, 2**32 + 1]
    assert model.add(X[:5], TARGETS["two classes"][:5], row_ids=ids).added_ids.tolist() == ids
    model.check_state()
    assert model.remove([LARGEST_ID, LEAST_ID]).removed_ids.tolist() == [LARGEST_ID, LEAST_ID]
    assert sorted(model.row_ids_.tolist()) == [-1, *range(N_ROWS), 2**32, 2**32 + 1]
    # The largest id was used, and ids are not used twice unless somebody asks for it.
    with pytest.raises(ValueError, match=rf"row_ids is required: .* {LARGEST_ID}.*Pass unused ids"):
        model.add(X[:1], [1])
    assert model.add(X[:1], [1], row_ids=[LARGEST_ID]).added_ids.tolist() == [LARGEST_ID]
    model.check_state()


def test_ids_of_all_kinds_of_integers():
    model = fitted()
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        assert model.remove(np.array([3, 5], dtype=dtype)).removed_ids.tolist() == [3, 5]
        report = model.add(X[[3, 5]], [1, 0], row_ids=np.array([5, 3], dtype=dtype))
        assert report.added_ids.tolist() == [5, 3]
    assert model.remove(np.uint8(7)).removed_ids.tolist() == [7]
    model.check_state()


def test_an_id_may_be_given_on_at_once():
    y = TARGETS["regression"]
    model = fitted("regression", tolerance=1e12)
    before = model.predict(X)
    model.update(X[50:60], y[50:60], row_ids=range(10), remove=range(10))
    assert sorted(model.row_ids_.tolist()) == list(range(N_ROWS))
    assert not np.array_equal(model.predict(X), before)
    model.check_state()
    model.update(X[:10], y[:10], row_ids=range(10), remove=range(10))
    assert np.array_equal(model.refit().predict(X), before)


def test_ids_that_are_numbered_go_on():
    model = fitted()
    y = TARGETS["two classes"]
    assert model.add(X[:2], y[:2]).added_ids.tolist() == [200, 201]
    model.remove([200, 201])
    assert model.add(X[:1], y[:1]).added_ids.tolist() == [202]
    model.add(X[:1], y[:1], row_ids=[1_000])
    model.add(X[:1], y[:1], row_ids=[-1_000])
    with pytest.raises(ValueError, match="already holds a row with id 1000"):
        model.add(X[:2], y[:2], row_ids=[1_000, 5_000])
    assert model.add(X[:1], y[:1]).added_ids.tolist() == [1_001]
    model = pickle.loads(pickle.dumps(model))
    assert model.add(X[:1], y[:1]).added_ids.tolist() == [1_002]
    assert model.partial_fit(X[:1], y[:1]).row_ids_.max() == 1_003


def test_an_id_means_the_same_row_after_many_updates():
    """What the model holds is known by replaying the ids; a fit of those rows is its refit."""
    rng = np.random.default_rng(3)
    y = TARGETS["regression"]
    model = GraftBoostRegressor(n_estimators=3, bin_edges=[np.linspace(-2, 2, 21).tolist()] * 3)
    model.fit(X, y)
    row_of = dict(enumerate(range(N_ROWS)))
    for step in range(60):
        out = rng.permutation(sorted(row_of))[: rng.integers(0, 15)]
        into = rng.integers(0, N_ROWS, rng.integers(1, 15))
        ids = None if step % 2 else rng.permutation(10_000)[: len(into)] - 20_000
        if ids is not None:
            ids = ids[~np.isin(ids, sorted(row_of))]
            into = into[: len(ids)]
        report = model.update(X[into], y[into], row_ids=ids, remove=out)
        for id_ in out.tolist():
            del row_of[id_]
        row_of.update(zip(report.added_ids.tolist(), into.tolist(), strict=True))
    assert set(model.row_ids_.tolist()) == set(row_of)
    model.check_state()
    rows = list(row_of.values())
    fresh = clone(model).fit(X[rows], y[rows], row_ids=list(row_of))
    assert np.array_equal(model.refit().predict(X), fresh.predict(X))


# --- what is refused ----------------------------------------------------------------------------

ONE = {"X": X[:1], "y": [1]}
TWO = {"X": X[:2], "y": [1, 0]}

REFUSED = {
    "unknown ids": ({"remove": [5, -1]}, r"remove: the model holds no row with id -1"),
    "ids of text": ({"remove": ["5"]}, r"remove has dtype <U1, but ids are 64-bit .*Convert them"),
    "no id among ids": ({"remove": [5, None]}, r"remove has dtype object"),
    "ids beyond 64 bits": ({"remove": [2**64]}, r"remove has dtype object, but ids are 64-bit"),
    "ids beyond 63 bits": (
        {"remove": [2**63]},
        r"remove contains 9223372036854775808, which is too",
    ),
    "ids in a table": ({"remove": [[1, 2], [3, 4]]}, r"remove has shape \(2, 2\)"),
    "ids in a set": ({"remove": {1, 2}}, r"remove has dtype object"),
    "a lone truth": ({"remove": True}, r"remove is a mask of shape \(1,\).* one boolean for each"),
    "mask too long": ({"remove": np.ones(201, bool)}, r"remove is a mask .* holds 200 rows"),
    "slice of text": ({"remove": slice("a", "b")}, r"remove is a slice with the bound 'a'"),
    "slice of fractions": ({"remove": slice(0, 1.5)}, r"remove is a slice with the bound 1.5"),
    "slice backwards": ({"remove": slice(9, 0, -1)}, r"remove is a slice with step -1"),
    "y without X": ({"y": [1], "remove": [0]}, r"y is given without X"),
    "weights without X": ({"sample_weight": [1]}, r"sample_weight is given without X"),
    "ids without X": ({"row_ids": [1], "remove": [0]}, r"row_ids is given without X"),
    "X without y": ({"X": X[:1]}, r"y is None"),
    "no rows": ({"X": X[:0], "y": []}, r"X: .*0 sample"),
    "no rows in a frame": ({"X": FRAME[:0], "y": []}, r"X: .*0 sample"),
    "too few columns": ({**ONE, "X": X[:1, :2]}, r"X has 2 features, but .* is expecting 3"),
    "other names": (
        {**ONE, "X": FRAME.rename(columns={"a": "z"})[:1]},
        r"feature names should match.*\n.*unseen at fit time:\n- z",
    ),
    "other order": ({**ONE, "X": FRAME[["b", "a", "c"]][:1]}, r"must be in the same order"),
    "text in X": ({**ONE, "X": FRAME.assign(b="x")[:1]}, r"X: column 'b' contains .* str.*Convert"),
    "categories in X": (
        {**ONE, "X": FRAME.assign(b=pd.Categorical(["x"] * 200))[:1]},
        r"X: column 'b' has a category dtype, but is not among",
    ),
    "infinity in X": ({**ONE, "X": [[0, 0, np.inf]]}, r"X: column 2 contains infinity"),
    "NaN in y": ({**TWO, "y": [1, np.nan]}, r"y contains NaN"),
    "None in y": ({**TWO, "y": [1, None]}, r"y contains NaN"),
    "infinity in y": ({**TWO, "y": [1, np.inf]}, r"y contains infinity"),
    "y too long": ({**ONE, "y": [1, 0]}, r"y has 2 values, but X has 1 rows"),
    "weights too long": ({**ONE, "sample_weight": [1, 1]}, r"sample_weight has 2 values, but X"),
    "NaN among weights": ({**ONE, "sample_weight": [np.nan]}, r"sample_weight contains NaN"),
    "negative weights": ({**ONE, "sample_weight": [-2]}, r"sample_weight is negative in row"),
    "ids too long": ({**ONE, "row_ids": [900, 901]}, r"row_ids has 2 values, but X has 1 rows"),
    "ids of floats": (
        {**ONE, "row_ids": [900.0]},
        r"row_ids has dtype float64.*omit row_ids to number the rows",
    ),
    "ids twice": (
        {**TWO, "row_ids": [900, 900]},
        r"row_ids contains 900 more than once.*must be unique",
    ),
    "ids that are held": (
        {**TWO, "row_ids": [900, 3]},
        r"row_ids: the model already holds a row with id 3; remove it in the same update",
    ),
    "an id that stays": ({**ONE, "row_ids": [3], "remove": [4]}, r"already holds .* id 3;"),
    "good rows beside unknown ids": ({**ONE, "remove": [999]}, r"holds no row with id 999"),
}
REFUSED_BY = {
    "two classes": {
        "text among numbers": (
            {**ONE, "y": ["x"]},
            r"y contains a class of type str, .* of the same type",
        ),
        "no classes": ({**TWO, "y": [0.5, 1]}, r"Unknown label type: continuous"),
    },
    "regression": {
        "text": ({**ONE, "y": ["x"]}, r"y contains text that is not a number.* Convert it"),
        "too far above": ({**ONE, "y": [1e6]}, r"y: a value lies too far .* Fit a new model"),
        "too far below": ({**TWO, "y": [1, -1e30]}, r"y: a value lies too far .* Fit a new model"),
    },
}
ALL_REFUSED = [
    pytest.param(target, arguments, message, id=f"{target}, {name}")
    for target, refused in REFUSED_BY.items()
    for name, (arguments, message) in {**REFUSED, **refused}.items()
]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize(("target", "arguments", "message"), ALL_REFUSED)
def test_what_is_refused_changes_nothing(target, arguments, message):
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    model = Estimator(n_estimators=3, n_jobs=1).fit(FRAME, TARGETS[target])
    before, predicted = pickle.dumps(model), model._raw_scores(FRAME)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.update(**arguments)
    assert pickle.dumps(model) == before
    assert np.array_equal(model._raw_scores(FRAME), predicted)
    assert model.row_ids_.tolist() == list(range(N_ROWS))
    model.check_state()
    assert model.add(FRAME[:1], [1]).added_ids.tolist() == [N_ROWS]


def test_weights_that_the_grid_cannot_hold():
    model = GraftBoostRegressor(n_estimators=3).fit(X, TARGETS["regression"], np.arange(N_ROWS))
    before = pickle.dumps(model)
    with pytest.raises(
        ValueError, match=r"sample_weight: a weight is too large .* Fit a new model"
    ):
        model.add(X[:1], [1.0], [1e9])
    assert pickle.dumps(model) == before


def test_nothing_is_named():
    model = fitted()
    with pytest.raises(ValueError, match=r"row_ids is None. Pass ids, a mask"):
        model.remove(None)
    with pytest.raises(ValueError, match=r"X is None. Pass the features"):
        model.add(None, [1])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("tolerance_rule", "sigma"), ("tolerance", -1), ("tolerance", "low"), ("n_jobs", 1.5)],
)
def test_parameters_are_checked_by_every_update(parameter, value):
    model = fitted()
    before = pickle.dumps(model._engine_model)
    model.set_params(**{parameter: value})
    with pytest.raises(ValueError, match=rf"The '{parameter}' parameter of .* must be .*Got"):
        model.remove([0])
    assert pickle.dumps(model._engine_model) == before


@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
def test_updates_need_a_fitted_model(Estimator):
    for call in (
        lambda model: model.add(X, TARGETS["two classes"]),
        lambda model: model.remove([0]),
        lambda model: model.update(),
        lambda model: model.refit(),
        lambda model: model.row_ids_,
        lambda model: model.n_rows_,
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(Estimator())
    assert not hasattr(Estimator(), "classes_")


def test_remove_names_its_own_argument():
    model = GraftBoostClassifier(n_estimators=2).fit(X, TARGETS["two classes"])
    with pytest.raises(
        ValueError, match="row_ids: the model holds no row with id -1; row_ids_ has"
    ):
        model.remove([-1])
    with pytest.raises(ValueError, match="row_ids has dtype float64"):
        model.remove([1.5])


def test_rows_that_count_for_nothing_cannot_be_all_there_is():
    weight = np.ones(len(X))
    weight[:5] = 0
    model = GraftBoostRegressor(n_estimators=3).fit(X, X[:, 0], weight)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="all rows that would be left have weight 0"):
        model.remove(slice(5, None))
    assert pickle.dumps(model) == before
    model.remove(slice(6, None))
    model.check_state()
    assert np.isfinite(model.predict(X)).all()


def test_targets_that_become_hard_to_tell_apart_stay_on_their_scale():
    y = 3 * X[:, 0]
    y[:2] = 0, 1e-309
    model = GraftBoostRegressor(n_estimators=3).fit(X, y)
    model.remove(slice(2, None))
    model.check_state()
    assert np.allclose(model.predict(X[:2]), 0, atol=1e-6)  # a step of their grid


def test_rows_may_come_back_after_all_but_two_left():
    y = 3 * X[:, 0]
    model = GraftBoostRegressor(n_estimators=3).fit(X, y, row_ids=np.arange(len(X)))
    expected = model.predict(X)
    model.remove(slice(2, None))
    model.add(X[2:], y[2:], row_ids=np.arange(2, len(X)))
    assert np.array_equal(model.predict(X), expected)


def test_refresh_of_a_fit_changes_nothing():
    for target, Estimator in (
        ("two classes", GraftBoostClassifier),
        ("regression", GraftBoostRegressor),
    ):
        model = Estimator(n_estimators=5, subsample=0.7).fit(X, TARGETS[target])
        expected, importances = model._raw_scores(X), model.feature_importances_
        model.refresh().check_state()
        assert np.array_equal(model._raw_scores(X), expected)
        assert np.allclose(model.feature_importances_, importances)


def test_refresh_leaves_structure_and_an_update_afterwards_works():
    model = GraftBoostClassifier(n_estimators=10, tolerance=1e9).fit(X, TARGETS["two classes"])
    assert model.remove(slice(0, 4)).strategy == "in-place"
    leaves = model.apply(X)
    before = model._raw_scores(X)
    model.refresh().check_state()
    assert np.array_equal(model.apply(X), leaves)
    assert not np.array_equal(model._raw_scores(X), before)
    once = model._raw_scores(X)
    assert np.array_equal(model.refresh()._raw_scores(X), once)
    copied = pickle.loads(pickle.dumps(model))
    for each in (model, copied):
        each.remove([25, 30])
        each.check_state()
    assert np.array_equal(copied._raw_scores(X), model._raw_scores(X))


def test_a_deep_copy_lives_its_own_life():
    model = GraftBoostClassifier(n_estimators=10).fit(X, TARGETS["two classes"])
    before = pickle.dumps(model)
    other = copy.deepcopy(model)
    assert pickle.dumps(other) == before
    other.remove([1, 2, 3])
    other.check_state()
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("seed", [4, 15, 19])
def test_node_that_was_too_small_to_split_grows_and_is_regrown(seed):
    """What is counted for a node's ancestors must not take the place of the node's own rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 4)).round(2)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=700)
    model = GraftBoostRegressor(
        n_estimators=10, max_leaf_nodes=12, min_samples_leaf=10, n_jobs=1, tolerance=100.0
    ).fit(X[:60], y[:60])
    for begin in range(60, 700, 8):
        model.add(X[begin : begin + 8], y[begin : begin + 8])
        model.check_state()
