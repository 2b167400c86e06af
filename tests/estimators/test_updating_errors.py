"""Invalid updates: the error names the argument, and the model is unchanged."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .small_models import N_ROWS, TARGETS, X, fitted

NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES)

ONE = {"X": X[:1], "y": [1]}
TWO = {"X": X[:2], "y": [1, 0]}

REFUSED = {
    "unknown ids": ({"remove": [5, -1]}, r"remove: the model holds no row with id -1"),
    "ids of text": ({"remove": ["5"]}, r"remove has dtype <U1, but ids are 64-bit .*Convert them"),
    "None among ids": ({"remove": [5, None]}, r"remove has dtype object"),
    "ids beyond 64 bits": ({"remove": [2**64]}, r"remove has dtype object, but ids are 64-bit"),
    "ids beyond 63 bits": (
        {"remove": [2**63]},
        r"remove contains 9223372036854775808, which is too",
    ),
    "ids in a table": ({"remove": [[1, 2], [3, 4]]}, r"remove has shape \(2, 2\)"),
    "ids in a set": ({"remove": {1, 2}}, r"remove has dtype object"),
    "a single boolean": (
        {"remove": True},
        r"remove is a mask of shape \(1,\).* one boolean for each",
    ),
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
    "an id that is not removed": (
        {**ONE, "row_ids": [3], "remove": [4]},
        r"already holds .* id 3;",
    ),
    "good rows beside unknown ids": ({**ONE, "remove": [999]}, r"holds no row with id 999"),
}
REFUSED_BY = {
    "two classes": {
        "text among numbers": (
            {**ONE, "y": ["x"]},
            r"y contains a class of type str, .* of the same type",
        ),
        "continuous labels": ({**TWO, "y": [0.5, 1]}, r"Unknown label type: continuous"),
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
def test_invalid_updates(target, arguments, message):
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


def test_weights_outside_the_representable_range():
    model = GraftBoostRegressor(n_estimators=3).fit(X, TARGETS["regression"], np.arange(N_ROWS))
    before = pickle.dumps(model)
    with pytest.raises(
        ValueError, match=r"sample_weight: a weight is too large .* Fit a new model"
    ):
        model.add(X[:1], [1.0], [1e9])
    assert pickle.dumps(model) == before


def test_no_rows_are_given():
    model = fitted()
    with pytest.raises(ValueError, match=r"row_ids is None. Pass ids, a mask"):
        model.remove(None)
    with pytest.raises(ValueError, match=r"X is None. Pass the features"):
        model.add(None, [1])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("fidelity", 1.5),
        ("fidelity", None),
        ("memory_floor", -0.1),
        ("memory_floor", np.inf),
        ("update_rule", "sigma"),
        ("tolerance", -1),
        ("tolerance", "low"),
        ("n_jobs", 1.5),
    ],
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


def test_rows_of_weight_zero_cannot_be_the_only_ones_left():
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
