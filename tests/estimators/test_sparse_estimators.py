"""All methods accept sparse tables, with the same results as for arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.audit import audit_removal
from graftboost.estimators.inspection import held_rows, raw_scores
from tests.input.sparse_tables import (
    N_COLUMNS,
    N_ROWS,
    TARGETS,
    WEIGHT,
    X,
    assert_same,
    assert_same_report,
    make_model,
)

METHODS = {
    "regression": ["predict", "staged_predict", "apply"],
    "two classes": [
        "predict",
        "predict_proba",
        "decision_function",
        "staged_predict",
        "staged_predict_proba",
        "staged_decision_function",
        "apply",
    ],
}
METHODS["three classes"] = METHODS["two classes"]


@pytest.mark.parametrize("fitted", ["sparse", "dense"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_method_accepts_sparse_and_dense_tables(target: str, fitted: str) -> None:
    y = TARGETS[target]
    model = make_model(target).fit(scipy.sparse.csr_array(X) if fitted == "sparse" else X, y)
    for name in METHODS[target]:
        method = getattr(model, name)
        expected = method(X)
        for table in (scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
            if name.startswith("staged"):
                stages, others = list(method(table)), list(method(X))
                assert len(stages) == len(others) == 5
                assert all(map(np.array_equal, stages, others))
            else:
                assert np.array_equal(method(table), expected)
    assert model.score(scipy.sparse.csr_matrix(X), y) == model.score(X, y)
    assert model.score(scipy.sparse.csc_array(X), y, WEIGHT) == model.score(X, y, WEIGHT)


def test_predictions_of_few_rows() -> None:
    model = make_model().fit(scipy.sparse.csr_array(X), TARGETS["two classes"])
    expected = model.predict_proba(X)
    for i in range(20):
        assert np.array_equal(model.predict_proba(scipy.sparse.csr_matrix(X[[i]])), expected[[i]])
    empty = scipy.sparse.csr_array((3, N_COLUMNS))
    assert np.array_equal(model.predict_proba(empty), model.predict_proba(np.zeros((3, N_COLUMNS))))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_model_does_not_depend_on_row_order_or_threads(n_jobs: int) -> None:
    order = np.random.default_rng(0).permutation(N_ROWS)
    y = TARGETS["three classes"]
    model = make_model(n_jobs=n_jobs, subsample=0.7)
    model.fit(scipy.sparse.csr_matrix(X[order]), y[order], WEIGHT[order], row_ids=order)
    assert_same(model, make_model(subsample=0.7).fit(X, y, WEIGHT))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("given", ["both sparse", "X sparse", "X_val sparse", "held out"])
def test_validation(target: str, given: str) -> None:
    y = TARGETS[target]
    parameters = {"early_stopping": True, "n_iter_no_change": 2, "n_estimators": 40}
    model, dense = (make_model(target, **parameters) for _ in range(2))
    if given == "held out":
        model.fit(scipy.sparse.csr_matrix(X), y, WEIGHT)
        dense.fit(X, y, WEIGHT)
    else:
        fitted, held_out = X[:180], X[180:]
        dense.fit(fitted, y[:180], X_val=held_out, y_val=y[180:])
        if given != "X_val sparse":
            fitted = scipy.sparse.csr_matrix(fitted)
        if given != "X sparse":
            held_out = scipy.sparse.csc_array(held_out)
        model.fit(fitted, y[:180], X_val=held_out, y_val=y[180:])
    assert model.validation_losses_.tolist() == dense.validation_losses_.tolist()
    assert model.n_iter_ == dense.n_iter_
    assert_same(model, dense)
    assert_same_report(model.remove(model.row_ids_[::25]), dense.remove(dense.row_ids_[::25]))
    assert_same(model, dense)


def test_validation_rows_of_another_precision() -> None:
    """X in single and X_val in double precision, in all formats."""
    y, fitted, held_out = TARGETS["regression"], X[:180].astype(np.float32), X[180:]
    expected = make_model("regression").fit(fitted, y[:180], X_val=held_out, y_val=y[180:])
    for make in (scipy.sparse.csr_array, np.asarray):
        for other in (scipy.sparse.csr_array, np.asarray):
            model = make_model("regression").fit(
                make(fitted), y[:180], X_val=other(held_out), y_val=y[180:]
            )
            assert model.validation_losses_.tolist() == expected.validation_losses_.tolist()
            assert_same(model, expected)


def test_feature_names_are_kept_with_sparse_tables() -> None:
    y = TARGETS["two classes"]
    frame = pd.DataFrame(X, columns=[f"x{f}" for f in range(N_COLUMNS)])
    model = make_model().fit(frame, y)
    dense = make_model().fit(X, y)
    table = scipy.sparse.csr_array(X)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict_proba(table), dense.predict_proba(X))
    assert not hasattr(make_model().fit(table, y), "feature_names_in_")


def test_tags() -> None:
    for Estimator in (GraftBoostClassifier, GraftBoostRegressor):
        assert get_tags(Estimator()).input_tags.sparse


def test_clones_and_parameters() -> None:
    model = make_model(stats_memory=1e6)
    assert clone(model).get_params() == model.get_params()
    assert GraftBoostRegressor().stats_memory is None


def test_partial_fit() -> None:
    y = TARGETS["two classes"]
    model, dense = make_model(), make_model()
    for begin in range(0, N_ROWS, 60):
        rows = slice(begin, begin + 60)
        model.partial_fit(scipy.sparse.csc_array(X[rows]), y[rows], classes=["no", "yes"])
        dense.partial_fit(X[rows], y[rows], classes=["no", "yes"])
        assert_same(model, dense)
    assert model.n_rows_ == N_ROWS


def test_pipelines_of_text() -> None:
    words = ["oak", "elm", "fir", "ash", "yew"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    y = np.array(["oak" in text for text in texts])
    model = make_pipeline(CountVectorizer(), make_model())
    assert cross_val_score(model, texts, y, cv=3).min() > 0.95
    hashed = FeatureHasher(2**20, input_type="string").transform([t.split() for t in texts])
    model = make_model().fit(hashed, y)
    assert model.score(hashed, y) > 0.95
    assert model.n_features_in_ == 2**20
    model.remove(np.flatnonzero(y)[:20])
    model.check_state()


def test_audits_of_sparse_models() -> None:
    y = TARGETS["two classes"]
    model = make_model(n_estimators=3).fit(scipy.sparse.csr_array(X[:200]), y[:200])
    dense = make_model(n_estimators=3).fit(X[:200], y[:200])
    found = audit_removal(model, range(30), scipy.sparse.csr_array(X[200:]), y[200:])
    expected = audit_removal(dense, range(30), X[200:], y[200:])
    assert "Removing 30 of 200 rows" in str(found)
    assert len(found.parts) == len(expected.parts)
    model.check_state()


@pytest.mark.parametrize("categorical", [None, [1, 2, 3]])
@pytest.mark.parametrize("target", TARGETS)
def test_held_rows_have_the_scores_of_the_original_rows(
    target: str, categorical: list[int] | None
) -> None:
    y = TARGETS[target]
    model = make_model(target, categorical_features=categorical)
    model.fit(scipy.sparse.csr_array(X[:150]), y[:150])
    model.add(scipy.sparse.csr_array(X[150:]), y[150:])
    model.add(-X[:20], y[:20])  # values of the opposite sign, or unknown categories
    everything = np.vstack([X, -X[:20]])
    ids = np.random.default_rng(0).permutation(len(everything))
    expected = model._raw_scores(everything[ids])
    found = held_rows(model, ids)
    if target != "regression":  # whose targets are rounded to a grid
        assert np.array_equal(found.y, np.concatenate([y, y[:20]])[ids])
    assert np.array_equal(raw_scores(model, found).ravel(), expected.ravel())
