"""The parameter class_weight: labels of every kind, and labels that are not in y."""

from __future__ import annotations

import numpy as np
import pytest

from graftboost import GraftBoostClassifier

X = np.random.default_rng(0).normal(size=(120, 3))
SECOND = X[:, 0] + X[:, 1] > 0.5


def fitted(labels, class_weight):
    y = np.where(SECOND, labels[1], labels[0])
    if labels.dtype == object:
        y = y.astype(object)
    return GraftBoostClassifier(n_estimators=4, class_weight=class_weight, n_jobs=1).fit(X, y)


EXPECTED = fitted(np.array(["no", "yes"]), {"no": 1.0, "yes": 3.0})
BALANCED = fitted(np.array(["no", "yes"]), "balanced")

LABELS = {
    "digits as text": (np.array(["1", "2"]), {"1": 1.0, "2": 3.0}),
    "digits as objects": (np.array(["1", "2"], dtype=object), {"1": 1.0, "2": 3.0}),
    "numbers as text": (np.array(["-1.5", "2e3"]), {"-1.5": 1.0, "2e3": 3.0}),
    "only one given": (np.array(["1", "2"]), {"2": 3.0}),
    "numpy's text": (np.array(["1", "2"]), {np.str_("1"): 1.0, np.str_("2"): 3.0}),
    "bool": (np.array([False, True]), {False: 1.0, True: 3.0}),
    "bool as numbers": (np.array([False, True]), {0: 1.0, 1: 3.0}),
    "integers": (np.array([1, 2]), {1: 1, 2: 3}),
    "integers as floats": (np.array([1, 2]), {1.0: 1.0, 2.0: 3.0}),
    "floats as integers": (np.array([1.0, 2.0]), {1: 1.0, 2: 3.0}),
    "numpy's integers": (np.array([1, 2]), {np.int64(1): 1.0, np.uint8(2): 3.0}),
    "days": (
        np.array(["2024-01-01", "2024-02-01"], dtype="datetime64[D]"),
        {np.datetime64("2024-01-01"): 1.0, np.datetime64("2024-02-01"): 3.0},
    ),
    "a class added later": (np.array(["1", "2"]), {"1": 1.0, "2": 3.0, "3": 7.0}),
}


@pytest.mark.parametrize(("labels", "class_weight"), LABELS.values(), ids=LABELS)
def test_labels_of_every_kind(labels, class_weight):
    model = fitted(labels, class_weight)
    assert np.array_equal(model.predict_proba(X), EXPECTED.predict_proba(X))
    balanced = fitted(labels, "balanced")
    assert np.array_equal(balanced.predict_proba(X), BALANCED.predict_proba(X))


def test_balanced_classes_have_equal_sums():
    weight = np.where(SECOND, 60 / SECOND.sum(), 60 / (~SECOND).sum())
    model = GraftBoostClassifier(n_estimators=4, n_jobs=1).fit(X, SECOND, sample_weight=weight)
    assert np.array_equal(model.predict_proba(X), BALANCED.predict_proba(X))


@pytest.mark.parametrize("kind", [str, object])
def test_class_added_later_has_its_weight(kind):
    y = np.array(["1", "2"], dtype=kind)[SECOND.astype(int)]
    weights = {"1": 1.0, "2": 3.0, "3": 7.0}
    later = GraftBoostClassifier(n_estimators=3, class_weight=weights, n_jobs=1).fit(X, y)
    later.add(X[:30], np.array(["3"] * 30, dtype=kind))
    at_once = GraftBoostClassifier(
        n_estimators=3, class_weight=weights, n_jobs=1, bin_edges=edges_of(later)
    ).fit(np.vstack([X, X[:30]]), np.append(y, np.array(["3"] * 30, dtype=kind)))
    assert later.classes_.tolist() == ["1", "2", "3"]
    assert np.array_equal(later.predict_proba(X), at_once.predict_proba(X))


def edges_of(model):
    return [model._engine_model.bins.edges(feature).tolist() for feature in range(X.shape[1])]


@pytest.mark.parametrize(
    ("labels", "class_weight", "kind"),
    [
        (np.array(["1", "2"]), {1: 1.0, 2: 3.0}, "str"),
        (np.array([1, 2]), {"1": 1.0, "2": 3.0}, "int"),
        (np.array(["no", "yes"]), {"no": 1.0, "Yes": 3.0}, "str"),
    ],
)
def test_labels_not_in_y(labels, class_weight, kind):
    message = rf"class_weight has a weight for .* not a class of y, .* of type {kind}\."
    with pytest.raises(ValueError, match=message):
        fitted(labels, class_weight)


def test_product_of_weights_too_large():
    weight = np.full(len(X), 1e300)
    model = GraftBoostClassifier(n_estimators=2, class_weight={0: 1e10, 1: 1.0})
    with pytest.raises(ValueError, match="sample_weight times class_weight exceeds"):
        model.fit(X, SECOND.astype(int), sample_weight=weight)


def test_no_row_has_a_positive_weight():
    weight = SECOND.astype(float)
    model = GraftBoostClassifier(n_estimators=2, class_weight={0: 1.0, 1: 0.0})
    with pytest.raises(ValueError, match="No training row has a positive weight"):
        model.fit(X, SECOND.astype(int), sample_weight=weight)


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
