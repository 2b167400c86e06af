"""Classes whose rows all have weight zero, as in bootstraps that draw no row of a rare class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier

from graftboost import GraftBoostClassifier

N_ROWS = 300
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
LABELS = {
    "two classes": np.where(np.arange(N_ROWS) < 4, "rare", "usual"),
    "three classes": np.where(np.arange(N_ROWS) < 4, "rare", np.where(X[:, 0] > 0, "up", "down")),
}

RULES = [{}, {"update_rule": "regret"}, {"fidelity": 0.0}]


def new_model(**parameters):
    settings = {"n_estimators": 5, "min_samples_leaf": 4, "n_jobs": 1, **parameters}
    return GraftBoostClassifier(**settings)


def without_rare(y):
    return (y != "rare").astype(float)


def assert_rare_is_improbable(model, y):
    model.check_state()
    assert model.classes_.tolist() == np.unique(y).tolist()
    probabilities = model.predict_proba(X)
    assert np.isfinite(model._raw_scores(X)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    rare = probabilities[:, model.classes_.tolist().index("rare")]
    assert (rare >= 0).all()
    assert rare.max() < 1e-3


@pytest.mark.parametrize("target", LABELS)
@pytest.mark.parametrize("parameters", [*RULES, {"subsample": 0.5}])
def test_fit_and_updates_afterwards(target, parameters):
    y = LABELS[target]
    model = new_model(**parameters).fit(X, y, sample_weight=without_rare(y))
    assert_rare_is_improbable(model, y)
    model.remove([0, 7])
    assert_rare_is_improbable(model, y)
    model.add(X[[0, 7]], y[[0, 7]], [0.0, 1.0])
    assert_rare_is_improbable(model, y)
    assert_rare_is_improbable(model.refit(), y)
    # Rows with positive weights add the class again.
    model.add(np.repeat(X[:4] + 9, 20, axis=0), ["rare"] * 80, np.ones(80))
    model.refit().check_state()
    assert (model.predict(X[:4] + 9) == "rare").all()


@pytest.mark.parametrize("target", LABELS)
@pytest.mark.parametrize("parameters", RULES)
def test_rows_with_positive_weights_are_removed(target, parameters):
    y = LABELS[target]
    weight = np.ones(N_ROWS)
    weight[[1, 3]] = 0
    model = new_model(**parameters).fit(X, y, sample_weight=weight)
    model.remove([0, 2])
    assert_rare_is_improbable(model.refit(), y)


@pytest.mark.parametrize("target", LABELS)
def test_partial_fit(target):
    y = LABELS[target]
    model = new_model().partial_fit(X, y, sample_weight=without_rare(y))
    model.partial_fit(X, y, sample_weight=without_rare(y))
    assert model.n_rows_ == 2 * N_ROWS
    assert_rare_is_improbable(model, y)


def test_adding_an_unseen_class_of_weight_zero():
    y = LABELS["three classes"]
    known = y != "rare"
    model = new_model().fit(X[known], y[known])
    model.add(X[~known], y[~known], np.zeros(4))
    assert_rare_is_improbable(model, y)
    model.remove([0, 1])
    assert_rare_is_improbable(model, y)


def test_rows_of_weight_zero_hardly_affect_the_other_classes():
    y = LABELS["two classes"].copy()
    y[150:] = "other"
    known = y != "rare"
    model = new_model().fit(X, y, sample_weight=without_rare(y))
    softmax = model.predict_proba(X)[:, [0, 2]]
    two = new_model().fit(X[known], y[known]).predict_proba(X)
    assert (softmax.argmax(axis=1) == two.argmax(axis=1)).mean() > 0.9


@pytest.mark.parametrize("rare_is_first", [True, False])
def test_only_one_class_has_positive_weights(rare_is_first):
    """scikit-learn's boosted trees accept this too: there are two classes, and one is certain."""
    y = (X[:, 0] > 0).astype(int)
    weight = (y == int(rare_is_first)).astype(float)
    model = new_model().fit(X, y, sample_weight=weight)
    peer = HistGradientBoostingClassifier(max_iter=5).fit(X, y, sample_weight=weight)
    assert model.classes_.tolist() == peer.classes_.tolist() == [0, 1]
    assert (model.predict(X) == int(rare_is_first)).all()
    assert model.predict_proba(X)[:, int(not rare_is_first)].max() < 1e-3
    model.remove(slice(0, 100))
    model.check_state()
    assert (model.predict(X) == int(rare_is_first)).all()


@pytest.mark.parametrize("target", LABELS)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_bagging(target, early_stopping):
    y = np.where((LABELS[target] == "rare") & (np.arange(N_ROWS) > 0), "usual", LABELS[target])
    bags = BaggingClassifier(
        new_model(early_stopping=early_stopping), n_estimators=8, random_state=0
    )
    bags.fit(X, y)
    drawn = [0 in indices for indices in bags.estimators_samples_]
    assert set(drawn) == {False, True}  # the only row of the class is in some bags, not in all
    probabilities = bags.predict_proba(X)
    assert probabilities.shape == (N_ROWS, len(np.unique(y)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    for model in bags.estimators_:
        model.check_state()


def test_weights_of_held_out_rows_alone_are_refused():
    y = LABELS["three classes"]
    model = new_model(early_stopping=True)
    trained_on = np.isin(np.arange(N_ROWS), model.fit(X, y).row_ids_)
    assert 0 < trained_on.sum() < N_ROWS
    with pytest.raises(ValueError, match="held out for validation has a positive weight"):
        model.fit(X, y, sample_weight=trained_on.astype(float))
    with pytest.raises(ValueError, match=r"No training row has.*a row that is not held out"):
        model.fit(X, y, sample_weight=(~trained_on).astype(float))
