"""Models over shards are the same as local ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.distributed.folder import LocalFolder
from graftboost.store.digest import digest

from .in_process import SMALL, Cluster, fitted, folders, shuffled, with_categories


@pytest.mark.parametrize("n_shards", [1, 2, 5])
@pytest.mark.parametrize(
    ("load", "kind", "options"),
    [
        (load_breast_cancer, GraftBoostClassifier, {}),
        (load_iris, GraftBoostClassifier, {"class_weight": "balanced", "subsample": 0.6}),
        (load_diabetes, GraftBoostRegressor, {"early_stopping": True}),
    ],
)
def test_all_operations_give_the_local_model(
    tmp_path: Path, load: Any, kind: Any, options: dict[str, Any], n_shards: int
) -> None:
    X, y = shuffled(load)
    n = len(y) - 20
    local = kind(**SMALL, **options).fit(X[:n], y[:n])
    cluster = Cluster(tmp_path)
    cluster.fit(kind(**SMALL, **options), X[:n], y[:n], n_shards)

    def change(method: str, *arguments: Any, **named: Any) -> None:
        getattr(local, method)(*arguments, **named)
        cluster.coordinator.call("", method, *arguments, **named)
        assert cluster.digest == digest(local._engine_model)
        cluster.coordinator.fitted().check_state()

    assert cluster.digest == digest(local._engine_model)
    held = iter(local.row_ids_.tolist())
    change("remove", [next(held), next(held)])
    change("add", X[n : n + 3], y[n : n + 3])
    change("update", X[n + 3 : n + 5], y[n + 3 : n + 5], remove=[next(held)])
    change("refresh")
    change("remove", [next(held)])
    change("remove", [next(held)], regrow=False)
    change("regrow")
    change("refit")
    cluster.lose_node_half()
    assert cluster.digest == digest(local._engine_model)
    change("remove", [next(held)])
    cluster.coordinator.rebalance("", 3)
    change("remove", [next(held)])
    gathered = cluster.gathered()
    assert digest(gathered._engine_model) == digest(local._engine_model)
    gathered.check_state()


def test_weights_ids_and_categories(tmp_path: Path) -> None:
    X, y = shuffled(load_breast_cancer)
    frame = with_categories(X)
    rng = np.random.default_rng(1)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(y))
    ids = rng.permutation(10 * len(y))[: len(y)]
    local = GraftBoostClassifier(**SMALL).fit(frame, y, weight, row_ids=ids)
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), frame, y, 3, sample_weight=weight, row_ids=ids)
    assert cluster.digest == digest(local._engine_model)
    np.testing.assert_array_equal(
        cluster.coordinator.fitted().predict_proba(frame), local.predict_proba(frame)
    )


def test_very_unequal_weights_are_warned_of(tmp_path: Path) -> None:
    X, y = shuffled(load_breast_cancer)
    weight = np.where(np.arange(len(y)) == 5, 1e12, 1.0)
    with pytest.warns(UserWarning, match="The model has no splits"):
        Cluster(tmp_path).fit(GraftBoostClassifier(**SMALL), X, y, 2, sample_weight=weight)


def test_an_unseen_class_arrives(tmp_path: Path) -> None:
    X, y = shuffled(load_iris)
    two = y < 2
    local = GraftBoostClassifier(**SMALL).fit(X[two], y[two])
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), X[two], y[two], 2)
    for model in (local, cluster.coordinator):
        arguments = ("r", "add") if model is cluster.coordinator else ()
        method = model.call if model is cluster.coordinator else model.add
        method(*arguments, X[~two], y[~two])
    assert cluster.digest == digest(local._engine_model)
    assert cluster.coordinator.fitted().classes_.tolist() == [0, 1, 2]
    cluster.lose_node_half()
    assert cluster.coordinator.fitted().classes_.tolist() == [0, 1, 2]


def test_two_rows_with_one_id_are_refused(tmp_path: Path) -> None:
    X, y = shuffled(load_iris)
    ids = np.arange(len(y))
    ids[-1] = 3
    with pytest.raises(ValueError, match="row_ids contains 3 more than once"):
        Cluster(tmp_path).fit(GraftBoostClassifier(), X, y, 3, row_ids=ids)


def test_a_model_that_is_not_updatable(tmp_path: Path) -> None:
    cluster, X, y = fitted(tmp_path / "model", updatable=False)
    local = GraftBoostClassifier(**SMALL, updatable=False).fit(X, y)
    assert not folders(tmp_path / "model")  # shards and their rows are gone
    cluster.coordinator.save(LocalFolder(tmp_path / "saved"))
    other = Cluster(tmp_path / "other")
    other.coordinator.load("", LocalFolder(tmp_path / "saved"))
    np.testing.assert_array_equal(
        other.coordinator.fitted().predict_proba(X), local.predict_proba(X)
    )
    cluster.lose_node_half()
    found = cluster.coordinator.fitted().predict_proba(X)
    np.testing.assert_array_equal(found, local.predict_proba(X))
    with pytest.raises(ValueError, match="This model holds no rows"):
        cluster.coordinator.call("", "remove", [1])


def test_unused_columns_are_not_in_the_node_half(tmp_path: Path) -> None:
    """A rare column that its last row takes away leaves no trace, also after a recovery."""
    rng = np.random.default_rng(0)
    X = sparse.random(300, 40, 0.2, format="lil", random_state=0)
    X[:, 39] = 0
    y = (X[:, 0].toarray().ravel() + 0.1 * rng.normal(size=300) > 0.1).astype(int)
    local = GraftBoostClassifier(**SMALL).fit(X.tocsr(), y)
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), X.tocsr(), y, 2)
    more = X[:10].copy()
    more[:, 39] = 1
    for step in (
        ("add", more.tocsr(), y[:10]),
        ("remove", np.arange(300, 310)),
    ):
        getattr(local, step[0])(*step[1:])
        cluster.coordinator.call("", *step)
        assert cluster.digest == digest(local._engine_model)
        cluster.lose_node_half()
        assert cluster.digest == digest(local._engine_model)
        cluster.coordinator.fitted().check_state()
