"""Models over shards in one process: the same as local ones, through the loss of shards."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.errors import ShardError, ShardLostError
from graftboost.distributed.folder import LocalFolder
from graftboost.distributed.shards import ShardsInProcess
from graftboost.distributed.sources import GivenRows, RawRows
from graftboost.store.digest import digest

SMALL = {"n_estimators": 8, "max_leaf_nodes": 8, "min_samples_leaf": 5}


class Unreliable(ShardsInProcess):
    """Shards that are lost before or after some calls."""

    losses: dict[int, tuple[int, bool]]  # by the number of the call: which shard, and when
    n_calls = 0

    def call(self, index: int, method: str, *arguments: Any) -> Any:
        number = self.n_calls
        self.n_calls += 1
        lost, before = getattr(self, "losses", {}).get(number, (-1, True))
        if lost == index and before:
            self.kill(index)
        result = super().call(index, method, *arguments)
        if lost == index:
            self.kill(index)
            raise ShardLostError(index, "its process has ended")
        return result


class Cluster:
    """A coordinator with shards in this process."""

    def __init__(self, path: Path) -> None:
        self.root = LocalFolder(path)
        self.coordinator = Coordinator(self.root, self.make)

    def make(self, n_shards: int, folder: str) -> Unreliable:
        self.shards = Unreliable(n_shards, self.root.inside(folder))
        return self.shards

    def fit(self, estimator: Any, X: Any, y: Any, n_shards: int, **more: Any) -> None:
        ends = np.linspace(0, len(y), n_shards + 1).astype(int)
        sources = [
            GivenRows(
                RawRows(X[begin:end], y[begin:end], **{k: v[begin:end] for k, v in more.items()})
            )
            for begin, end in itertools.pairwise(ends)
        ]
        self.coordinator.fit(estimator, sources)

    def lose_node_half(self) -> None:
        self.coordinator = Coordinator(self.root, self.make)
        self.coordinator.recover()

    @property
    def digest(self) -> str:
        return digest(self.coordinator.fitted()._engine_model)


def shuffled(load: Any) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def with_categories(X: Any) -> pd.DataFrame:
    frame = pd.DataFrame(X).rename(columns=lambda c: f"x{c}")
    frame["x0"] = pd.Categorical.from_codes((X[:, 0] * 3).astype(int) % 7, list("abcdefg"))
    return frame


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
    cluster.coordinator.rebalance(3)
    change("remove", [next(held)])
    gathered = cluster.coordinator.gathered()
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


@pytest.mark.parametrize("seed", range(8))
def test_random_operations_through_losses(tmp_path: Path, seed: int) -> None:
    """Shards and the node half are lost at random; every state is that of a local model."""
    rng = np.random.default_rng(seed)
    X, y = shuffled(load_iris if seed % 2 else load_breast_cancer)
    n = len(y) - 40
    local = GraftBoostClassifier(**SMALL).fit(X[:n], y[:n])
    cluster = Cluster(tmp_path)
    n_shards = int(rng.integers(2, 5))
    cluster.fit(GraftBoostClassifier(**SMALL), X[:n], y[:n], n_shards)
    free = list(range(n, len(y)))
    for _ in range(12):
        first = cluster.shards.n_calls
        cluster.shards.losses = {
            first + int(rng.integers(0, 60)): (int(rng.integers(n_shards)), bool(rng.integers(2)))
            for _ in range(int(rng.integers(0, 3)))
        }
        if rng.random() < 0.2:
            cluster.lose_node_half()
        held = local.row_ids_
        removed = rng.choice(held, int(rng.integers(1, 4)), replace=False).tolist()
        if rng.random() < 0.15:
            local.refresh()
            cluster.coordinator.call("", "refresh")
        elif rng.random() < 0.5 and free:
            row = [free.pop()]
            local.update(X[row], y[row], row_ids=row, remove=removed)
            cluster.coordinator.call("", "update", X[row], y[row], row_ids=row, remove=removed)
        else:
            local.remove(removed)
            cluster.coordinator.call("", "remove", removed)
        assert cluster.digest == digest(local._engine_model)
    cluster.coordinator.fitted().check_state()


def test_a_shard_that_is_lost_again_and_again_undoes_the_operation(tmp_path: Path) -> None:
    X, y = shuffled(load_iris)
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), X, y, 2)
    before = cluster.digest
    first = cluster.shards.n_calls
    cluster.shards.losses = dict.fromkeys(range(first + 3, first + 60), (1, True))
    with pytest.raises(ShardError, match="shard 1 was lost 5 times"):
        cluster.coordinator.call("", "remove", [1, 2])
    cluster.shards.losses = {}
    assert cluster.digest == before
    cluster.coordinator.fitted().check_state()
    cluster.coordinator.call("", "remove", [1, 2])
    cluster.coordinator.fitted().check_state()


def test_a_request_is_not_done_twice(tmp_path: Path) -> None:
    X, y = shuffled(load_iris)
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), X, y, 2)
    assert cluster.coordinator.call("one", "remove", [1]) is not None
    cluster.lose_node_half()
    assert cluster.coordinator.call("one", "remove", [1]) is None
    assert 1 not in cluster.coordinator.fitted().row_ids_
