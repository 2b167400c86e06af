"""Invalid parameters: the error names the parameter, and the model is unchanged."""

import numpy as np
import pytest

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .refused_calls import X, Y, assert_refused, fit

BAD_PARAMETERS = {
    "n_estimators": [0, 1.5, "many", 2**31],
    "learning_rate": [0, -1, None, np.nan, np.inf],
    "max_leaf_nodes": [1, 0, 70_000, 31.5],
    "min_samples_leaf": [0],
    "min_hessian": [-0.1, np.nan, np.inf, None],
    "l2_regularization": [-0.1],
    "max_bins": [1, 65_536],
    "split_sample": [0, 1.1],
    "binning": ["sturges"],
    "bin_edges": [5],
    "subsample": [0, 1.5],
    "categorical_features": ["all", 3],
    "fidelity": [-0.1, 1.5, None, np.nan, "high"],
    "memory_floor": [-0.1, None, np.nan, np.inf, "low"],
    "update_rule": ["sigma", None, 1],
    "tolerance": [-1, np.nan, "low"],
    "updatable": ["yes"],
    "early_stopping": ["auto"],
    "validation_fraction": [0, 1, 5],
    "n_iter_no_change": [0],
    "tol": [-1e-3],
    "random_state": [-1, "seed"],
    "n_jobs": [1.5, "2"],
    "verbose": [-1],
}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(parameter, value) for parameter, values in BAD_PARAMETERS.items() for value in values],
)
def test_parameters_out_of_range(parameter, value):
    message = rf"The '{parameter}' parameter of GraftBoost\w+ must be .*Got"
    for Estimator in (GraftBoostClassifier, GraftBoostRegressor):
        assert_refused(Estimator, ValueError, message, fit, **{parameter: value})


BAD_FEATURES = {
    "n_jobs": (r"n_jobs is 0", {"n_jobs": 0}),
    "unknown name": (
        r"categorical_features contains 'z', which is not a feature: .* named a, b, c",
        {"categorical_features": ["z"]},
    ),
    "unknown index": (r"categorical_features contains 3", {"categorical_features": [3]}),
    "negative index": (r"categorical_features contains -1", {"categorical_features": [-1]}),
    "short mask": (
        r"categorical_features is a mask of shape \(2,\), but X has 3",
        {"categorical_features": [True, False]},
    ),
    "too few edges": (r"bin_edges has 2 entries, but X has 3", {"bin_edges": [[1, 2], [3]]}),
    "unknown feature": (r"bin_edges contains 'z'", {"bin_edges": {"z": [1.0]}}),
    "falling edges": (
        r"bin_edges of feature 'b' is .*must be finite, strictly increasing",
        {"bin_edges": {"b": [2.0, 1.0]}},
    ),
    "equal edges": (r"bin_edges of feature 'b'", {"bin_edges": {1: [1.0, 1.0]}}),
    "infinite edge": (r"bin_edges of feature 'a'", {"bin_edges": {0: [1.0, np.inf]}}),
    "edges of text": (r"bin_edges of feature 'a'", {"bin_edges": {0: ["low", "high"]}}),
    "too many edges": (
        r"bin_edges of feature 'a' has 70000 edges, but at most 65534",
        {"bin_edges": {"a": np.arange(70_000)}},
    ),
    "edges of a category": (
        r"bin_edges has edges for feature 'a', which is categorical",
        {"bin_edges": {"a": [1.0]}, "categorical_features": ["a"]},
    ),
}


@pytest.mark.parametrize(("message", "parameters"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_parameters_that_do_not_match_the_data(message, parameters):
    assert_refused(GraftBoostClassifier, ValueError, message, fit, **parameters)


def test_feature_names_require_a_frame():
    for parameters in ({"categorical_features": ["a"]}, {"bin_edges": {"a": [0.0]}}):
        argument = next(iter(parameters))
        assert_refused(
            GraftBoostRegressor,
            ValueError,
            rf"{argument} names the feature 'a', but X has no feature names",
            lambda model: model.fit(X, Y),
            **parameters,
        )


@pytest.mark.parametrize("class_weight", ["heavy", {0: -1, 1: 1}, {0: np.nan, 1: 1}, {5: 1}])
def test_class_weight(class_weight):
    assert_refused(GraftBoostClassifier, ValueError, "class_weight", fit, class_weight=class_weight)


def test_unknown_parameters():
    with pytest.raises(TypeError, match="n_trees"):
        GraftBoostClassifier(n_trees=10)
    with pytest.raises(ValueError, match="'n_trees'"):
        GraftBoostRegressor().set_params(n_trees=10)
    with pytest.raises(TypeError, match="class_weight"):
        GraftBoostRegressor(class_weight="balanced")
