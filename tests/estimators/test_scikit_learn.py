"""The estimators follow scikit-learn's conventions and work inside its tools."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.impute import SimpleImputer
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
                "a row of weight two is drawn, or held out, as one row; a repeated row has two "
                "ids, which are drawn independently"
            )
    elif is_classifier(estimator):
        for table in ("dense", "sparse"):
            failures[f"check_sample_weight_equivalence_on_{table}_data"] = (
                "holds up to about 1e-5, not 1e-7: the gradients of classes are rounded to two "
                "bytes by row id, and a repeated row has two ids (see test_weights)"
            )
    return failures


@parametrize_with_checks(
    [
        GraftBoostClassifier(n_estimators=10),
        GraftBoostRegressor(n_estimators=10),
        GraftBoostClassifier(n_estimators=10, min_samples_leaf=1, min_hessian=0, max_leaf_nodes=4),
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
        "min_hessian": 0.5,
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
