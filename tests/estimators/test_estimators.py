"""The estimators as scikit-learn and its users see them."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from graftboost import GraftBoostClassifier, GraftBoostRegressor

BOTH = pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])


def expected_failures(estimator):
    failures = {}
    if estimator.subsample < 1 or estimator.early_stopping:
        for table in ("dense", "sparse"):
            failures[f"check_sample_weight_equivalence_on_{table}_data"] = (
                "a row that weighs two is drawn, or held out, as one row; written twice, it has "
                "two ids, which are drawn one by one"
            )
    return failures


@parametrize_with_checks(
    [
        GraftBoostClassifier(n_estimators=10),
        GraftBoostRegressor(n_estimators=10),
        GraftBoostClassifier(n_estimators=10, min_samples_leaf=1, max_leaf_nodes=4),
        GraftBoostRegressor(n_estimators=10, min_samples_leaf=1, max_leaf_nodes=4),
        GraftBoostClassifier(
            n_estimators=10, min_samples_leaf=3, subsample=0.7, class_weight="balanced"
        ),
        GraftBoostRegressor(n_estimators=10, min_samples_leaf=3, early_stopping=True),
        GraftBoostClassifier(n_estimators=10, binning="width", max_bins=16, split_sample=1.0),
        GraftBoostRegressor(n_estimators=10, updatable=False, n_jobs=1, l2_regularization=1.0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_learns_two_classes(two_classes):
    X, y = two_classes
    model = GraftBoostClassifier().fit(X[:200], y[:200])
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X[200:], y[200:]) > 0.8
    scores = model.decision_function(X)
    assert scores.shape == (300,)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_learns_three_classes(three_classes):
    X, y = three_classes
    model = GraftBoostClassifier(n_estimators=40).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.7
    scores = model.decision_function(X)
    assert scores.shape == (300, 3)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_learns_a_numeric_target(numeric_target):
    X, y = numeric_target
    model = GraftBoostRegressor().fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.8


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [False, True],
        [-1, 1],
        [0.0, 1.0],
        [10**12, 10**12 + 7],
        np.array(["a", "b"], dtype=object),
    ],
)
def test_labels_of_any_kind_come_back_as_they_were(two_classes, labels):
    X, y = two_classes
    labels = np.asarray(labels)
    model = GraftBoostClassifier(n_estimators=5).fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, labels)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    expected = GraftBoostClassifier(n_estimators=5).fit(X, y).predict(X)
    np.testing.assert_array_equal(predicted, labels[expected])


def test_parameters_are_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        GraftBoostClassifier(100)


@BOTH
def test_parameters_may_be_numpy_numbers(Estimator, two_classes, assert_same_model):
    X, y = two_classes
    numbers = {
        "n_estimators": 3,
        "learning_rate": 0.5,
        "max_leaf_nodes": 5,
        "min_samples_leaf": 10,
        "l2_regularization": 0.25,
        "max_bins": 64,
        "split_sample": 0.5,
        "subsample": 0.75,
        "updatable": True,
        "early_stopping": True,
        "n_iter_no_change": 2,
        "tol": 0.0,
        "n_jobs": 1,
    }
    of_numpy = {name: np.asarray(number)[()] for name, number in numbers.items()}
    assert_same_model(Estimator(**of_numpy).fit(X, y), Estimator(**numbers).fit(X, y))


@BOTH
def test_fitted_attributes(Estimator, two_classes):
    X, y = two_classes
    model = Estimator(n_estimators=7)
    for attribute in ["n_rows_", "row_ids_", "n_iter_", "feature_importances_", "n_features_in_"]:
        assert not hasattr(model, attribute)
    model.fit(X, y)
    assert model.n_rows_ == 300
    assert model.n_iter_ == 7
    assert model.n_features_in_ == 5
    np.testing.assert_array_equal(model.row_ids_, np.arange(300))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "validation_losses_")
    assert not hasattr(model, "best_iteration_")
    model.check_state()


@BOTH
def test_feature_importances_are_shares_of_the_gain(Estimator, two_classes):
    X, y = two_classes
    model = Estimator(n_estimators=10).fit(X, y)
    assert model.feature_importances_.shape == (5,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    no_split = Estimator(n_estimators=3, min_samples_leaf=200).fit(X, y)
    np.testing.assert_array_equal(no_split.feature_importances_, np.zeros(5))


@BOTH
def test_feature_names_come_and_go_with_fits(Estimator, two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Estimator(n_estimators=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("bacde")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_tags():
    for model in (GraftBoostClassifier(), GraftBoostRegressor()):
        tags = get_tags(model)
        assert tags.input_tags.allow_nan
        assert tags.input_tags.categorical
        assert tags.input_tags.sparse
        assert not tags.input_tags.string
        assert tags.target_tags.required
    assert is_classifier(GraftBoostClassifier())
    assert is_regressor(GraftBoostRegressor())
    assert get_tags(GraftBoostClassifier()).classifier_tags.multi_class


@BOTH
def test_row_ids(Estimator, two_classes, rng, assert_same_model):
    X, y = two_classes
    ids = rng.permutation(10_000)[:300] - 5_000
    model = Estimator(n_estimators=5, subsample=0.5).fit(X, y, row_ids=ids)
    np.testing.assert_array_equal(np.sort(model.row_ids_), np.sort(ids))
    assert_same_model(
        Estimator(n_estimators=5).fit(X, y), Estimator(n_estimators=5).fit(X, y, row_ids=range(300))
    )


@BOTH
@pytest.mark.parametrize("parameters", [{}, {"subsample": 0.5}, {"early_stopping": True}])
def test_neither_order_nor_threads_matter(Estimator, two_classes, rng, parameters):
    X, y = two_classes
    ids = np.arange(300)
    order = rng.permutation(300)
    model = Estimator(n_estimators=10, n_jobs=1, **parameters)
    expected = model.fit(X, y).predict(X)
    shuffled = clone(model).set_params(n_jobs=3)
    shuffled.fit(X[order], y[order], row_ids=ids[order])
    np.testing.assert_array_equal(shuffled.predict(X), expected)
    np.testing.assert_array_equal(shuffled.feature_importances_, model.feature_importances_)


@pytest.mark.parametrize(
    "random_state",
    [3, np.int64(3), None, np.random.RandomState(3)],
    ids=["int", "int64", "None", "state"],
)
def test_random_state(two_classes, random_state):
    X, y = two_classes
    model = GraftBoostClassifier(n_estimators=3, subsample=0.5, random_state=random_state)
    model.fit(X, y)
    if isinstance(random_state, int | np.integer):
        again = GraftBoostClassifier(n_estimators=3, subsample=0.5, random_state=3).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_random_state_decides_which_rows_a_tree_sees(two_classes):
    X, y = two_classes
    first, second = (
        GraftBoostClassifier(n_estimators=3, subsample=0.5, random_state=seed).fit(X, y)
        for seed in (0, 1)
    )
    assert (first.predict_proba(X) != second.predict_proba(X)).any()


def test_staged_predictions_end_at_the_predictions(two_classes, three_classes):
    for X, y in (two_classes, three_classes):
        model = GraftBoostClassifier(n_estimators=6).fit(X, y)
        for method in ("predict", "predict_proba", "decision_function"):
            stages = list(getattr(model, f"staged_{method}")(X))
            assert len(stages) == 6
            np.testing.assert_array_equal(stages[-1], getattr(model, method)(X))
        losses = [log_loss(y, stage) for stage in model.staged_predict_proba(X)]
        assert losses == sorted(losses, reverse=True)


def test_a_stage_is_the_model_of_so_many_iterations(numeric_target):
    X, y = numeric_target
    stages = list(GraftBoostRegressor(n_estimators=5).fit(X, y).staged_predict(X))
    short = GraftBoostRegressor(n_estimators=3).fit(X, y)
    np.testing.assert_array_equal(stages[2], short.predict(X))


def test_a_stage_may_be_changed_by_who_gets_it(numeric_target):
    X, y = numeric_target
    model = GraftBoostRegressor(n_estimators=4).fit(X, y)
    for stage in model.staged_predict(X):
        last = stage.copy()
        stage[:] = 0
    np.testing.assert_array_equal(last, model.predict(X))


def test_apply(two_classes, three_classes, numeric_target):
    for model, (X, y), n_trees in [
        (GraftBoostClassifier(n_estimators=4, max_leaf_nodes=5), two_classes, 4),
        (GraftBoostClassifier(n_estimators=4, max_leaf_nodes=5), three_classes, 12),
        (GraftBoostRegressor(n_estimators=4, max_leaf_nodes=5), numeric_target, 4),
    ]:
        leaves = model.fit(X, y).apply(X)
        assert leaves.shape == (300, n_trees)
        assert leaves.dtype == np.int32
        assert all(2 <= len(np.unique(leaves[:, tree])) <= 5 for tree in range(n_trees))


# Early stopping.


@BOTH
def test_early_stopping_on_given_rows(Estimator, two_classes):
    X, y = two_classes
    model = Estimator(n_estimators=500, early_stopping=True, n_iter_no_change=5)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert model.n_rows_ == 200
    assert model.n_iter_ < 500
    assert model.n_iter_ == model.best_iteration_
    assert len(model.validation_losses_) == model.n_iter_ + 5
    whole = Estimator(n_estimators=model.n_iter_).fit(X[:200], y[:200])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


@BOTH
def test_early_stopping_on_a_fraction(Estimator, two_classes):
    X, y = two_classes
    ids = np.arange(1000, 1300)
    model = Estimator(n_estimators=500, early_stopping=True, validation_fraction=0.3)
    model.fit(X, y, row_ids=ids)
    assert model.n_iter_ < 500
    assert 180 < model.n_rows_ < 240
    assert set(model.row_ids_) < set(ids)
    held = ~np.isin(ids, model.row_ids_)
    given = clone(model).fit(X[~held], y[~held], row_ids=ids[~held], X_val=X[held], y_val=y[held])
    np.testing.assert_array_equal(given.predict(X), model.predict(X))
    np.testing.assert_array_equal(given.validation_losses_, model.validation_losses_)


def test_validation_rows_without_early_stopping_are_only_measured(two_classes):
    X, y = two_classes
    model = GraftBoostClassifier(n_estimators=60)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert model.n_iter_ == 60
    stages = model.staged_predict_proba(X[200:])
    np.testing.assert_allclose(
        model.validation_losses_, [log_loss(y[200:], stage) for stage in stages], rtol=1e-6
    )
    assert model.best_iteration_ == np.argmin(model.validation_losses_) + 1


def test_validation_losses_are_weighted(two_classes, rng):
    X, y = two_classes
    weight = rng.integers(1, 5, size=100).astype(float)
    model = GraftBoostClassifier(n_estimators=3, class_weight={0: 1, 1: 3})
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:], sample_weight_val=weight)
    expected = log_loss(
        y[200:], model.predict_proba(X[200:]), sample_weight=weight * np.where(y[200:], 3, 1)
    )
    assert model.validation_losses_[-1] == pytest.approx(expected, rel=1e-6)


def test_validation_rows_may_have_another_dtype(two_classes):
    X, y = two_classes
    single = X.astype(np.float32)
    model = GraftBoostClassifier(n_estimators=3)
    model.fit(single, y, X_val=single.astype(np.float64), y_val=y)
    expected = clone(model).fit(single, y, X_val=single, y_val=y).validation_losses_
    np.testing.assert_array_equal(model.validation_losses_, expected)


# Weights.


@BOTH
def test_weights_of_one_are_no_weights(Estimator, two_classes, assert_same_model):
    X, y = two_classes
    model = Estimator(n_estimators=5)
    assert_same_model(
        clone(model).fit(X, y), clone(model).fit(X, y, sample_weight=np.ones(300, dtype=int))
    )


@BOTH
def test_a_row_of_weight_two_counts_twice(Estimator, two_classes, rng):
    X, y = two_classes
    weight = rng.integers(0, 4, size=300)
    model = Estimator(n_estimators=10, min_samples_leaf=1, max_leaf_nodes=8)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_class_weight_multiplies_sample_weight(two_classes, rng, assert_same_model):
    X, y = two_classes
    weight = rng.integers(1, 4, size=300).astype(float)
    by_class = GraftBoostClassifier(n_estimators=5, class_weight={0: 1, 1: 2})
    by_row = GraftBoostClassifier(n_estimators=5)
    assert_same_model(
        by_class.fit(X, y, sample_weight=weight),
        by_row.fit(X, y, sample_weight=weight * np.where(y == 1, 2, 1)),
    )


def test_balanced_classes(two_classes):
    X, y = two_classes
    rare = (y == 0) | (np.arange(300) % 8 == 0)
    X, y = X[rare], y[rare]
    plain = GraftBoostClassifier(n_estimators=20).fit(X, y)
    balanced = GraftBoostClassifier(n_estimators=20, class_weight="balanced").fit(X, y)
    assert balanced.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1


# Inside scikit-learn.


@BOTH
def test_clone_and_parameters(Estimator, two_classes):
    model = Estimator(n_estimators=3, max_bins=64, random_state=5).fit(*two_classes)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "n_iter_")


@BOTH
@pytest.mark.parametrize("updatable", [True, False])
def test_pickle_and_joblib(Estimator, two_classes, tmp_path, updatable, assert_same_model):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Estimator(n_estimators=5, updatable=updatable).fit(frame, y)
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
        np.testing.assert_array_equal(copy.row_ids_, model.row_ids_)
        assert copy.feature_names_in_.tolist() == list("abcde")
        assert_same_model(copy, model)
        copy.check_state()


def test_pipeline(two_classes):
    X, y = two_classes
    pipeline = make_pipeline(StandardScaler(), GraftBoostClassifier(n_estimators=20))
    pipeline.fit(X[:200], y[:200])
    assert pipeline.score(X[200:], y[200:]) > 0.75
    assert pipeline.predict_proba(X).shape == (300, 2)


def test_grid_search(two_classes):
    X, y = two_classes
    search = GridSearchCV(
        GraftBoostClassifier(n_jobs=1), {"n_estimators": [1, 20], "max_leaf_nodes": [4]}, cv=3
    )
    search.fit(X, y)
    assert search.best_params_["n_estimators"] == 20


def test_cross_validation_in_processes(two_classes):
    X, y = two_classes
    model = GraftBoostClassifier(n_estimators=10)
    alone = cross_val_score(model, X, y, cv=3, scoring="neg_log_loss")
    with joblib.parallel_config("loky", n_jobs=2):
        together = cross_val_score(model, X, y, cv=3, scoring="neg_log_loss")
    np.testing.assert_array_equal(alone, together)


def test_fits_in_threads(two_classes):
    X, y = two_classes

    def fit(seed):
        model = GraftBoostClassifier(n_estimators=10, subsample=0.5, random_state=seed, n_jobs=1)
        return model.fit(X, y).predict_proba(X)

    together = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(fit)(seed) for seed in range(8)
    )
    np.testing.assert_array_equal(together, [fit(seed) for seed in range(8)])


def test_calibration(two_classes):
    X, y = two_classes
    calibrated = CalibratedClassifierCV(GraftBoostClassifier(n_estimators=10), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (300, 2)


def test_metadata_routing(two_classes, rng):
    X, y = two_classes
    weight = rng.integers(1, 4, size=300).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = GraftBoostClassifier(n_estimators=5).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(SimpleImputer(), model).fit(X, y, sample_weight=weight)
        model.set_score_request(sample_weight=True)
        scores = cross_validate(model, X, y, params={"sample_weight": weight}, cv=3)
        known_by_id = make_pipeline(
            SimpleImputer(), GraftBoostClassifier(n_estimators=5).set_fit_request(row_ids=True)
        ).fit(X, y, row_ids=np.arange(300) + 7)
    imputed = SimpleImputer().fit_transform(X)
    expected = GraftBoostClassifier(n_estimators=5).fit(imputed, y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected.predict_proba(imputed))
    assert len(scores["test_score"]) == 3
    np.testing.assert_array_equal(known_by_id[-1].row_ids_, np.arange(300) + 7)


# Bins.


@pytest.mark.parametrize(
    "bin_edges", [{0: [-1.0, 0.0, 1.0]}, {"a": (-1, 0, 1)}, [[-1, 0, 1], None, None, None, None]]
)
def test_given_bin_edges_are_used_as_they_are(two_classes, bin_edges):
    X, y = two_classes
    X = pd.DataFrame(X, columns=list("abcde"))
    model = GraftBoostClassifier(n_estimators=2, bin_edges=bin_edges).fit(X, y)
    np.testing.assert_array_equal(model._engine_model.bins.edges(0), [-1, 0, 1])
    assert len(model._engine_model.bins.edges(1)) > 3


def test_rows_that_weigh_nothing_leave_no_mark_on_the_bins(two_classes):
    X, y = two_classes
    weight = np.ones(300)
    weight[0] = 0
    X[0] = 1e6
    model = GraftBoostClassifier(n_estimators=2).fit(X, y, sample_weight=weight)
    assert model.n_rows_ == 300
    assert max(model._engine_model.bins.edges(feature).max() for feature in range(5)) < 1e3


def test_more_nodes_than_sixteen_bits_can_count():
    """A tree with 42,875 leaves, one for each row."""
    X = np.indices((35, 35, 35)).reshape(3, -1).T.astype(np.float32)
    y = np.random.default_rng(0).normal(size=len(X))
    model = GraftBoostRegressor(
        n_estimators=1,
        learning_rate=1.0,
        max_leaf_nodes=65_536,
        min_samples_leaf=1,
        updatable=False,
    ).fit(X, y)
    assert len(np.unique(model.apply(X))) > 2**15
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.99
