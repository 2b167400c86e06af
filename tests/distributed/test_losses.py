"""Shards and the node half are lost: operations complete, or are undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.distributed.errors import InterruptedCallError, ShardError
from graftboost.store.digest import digest

from .in_process import SMALL, Cluster, Unreliable, fitted, folders, shuffled


def two_classes() -> tuple[Any, Any, Any]:
    return GraftBoostClassifier(**SMALL), *shuffled(load_breast_cancer)


def three_classes() -> tuple[Any, Any, Any]:
    return GraftBoostClassifier(**SMALL, subsample=0.7), *shuffled(load_iris)


def numbers() -> tuple[Any, Any, Any]:
    return GraftBoostRegressor(**SMALL), *shuffled(load_diabetes)


def sparse_columns() -> tuple[Any, Any, Any]:
    X = sparse.random(400, 30, 0.1, format="csr", random_state=0)
    score = X[:, :10].toarray().sum(axis=1) + 0.1 * np.random.default_rng(0).normal(size=400)
    return GraftBoostClassifier(**SMALL), X, (score > 0.3).astype(int)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", [two_classes, three_classes, numbers, sparse_columns])
def test_random_operations_through_losses(tmp_path: Path, case: Any, seed: int) -> None:
    """Shards and the node half are lost at random; every state is that of a local model."""
    rng = np.random.default_rng(seed)
    model, X, y = case()
    n = len(y) - 40
    local = clone(model).fit(X[:n], y[:n])
    cluster = Cluster(tmp_path)
    n_shards = int(rng.integers(2, 5))
    cluster.fit(model, X[:n], y[:n], n_shards)
    free = list(range(n, len(y)))

    def change(method: str, *arguments: Any, **named: Any) -> None:
        getattr(local, method)(*arguments, **named)
        cluster.coordinator.call("", method, *arguments, **named)

    for _ in range(12):
        first = cluster.shards.n_calls
        cluster.shards.losses = {
            first + int(rng.integers(0, 60)): (int(rng.integers(n_shards)), bool(rng.integers(2)))
            for _ in range(int(rng.integers(0, 3)))
        }
        if rng.random() < 0.2:
            cluster.lose_node_half()
        removed = rng.choice(local.row_ids_, int(rng.integers(1, 4)), replace=False).tolist()
        kind = rng.random()
        if kind < 0.1:
            change("refresh")
        elif kind < 0.2:
            change("refit")
        elif kind < 0.6 and free:
            row = [free.pop()]
            weight = rng.choice([0.5, 1.0, 2.0], 1) if rng.random() < 0.2 else None
            change("update", X[row], y[row], weight, row_ids=row, remove=removed)
        else:
            change("remove", removed)
        if rng.random() < 0.3:
            cluster.coordinator.compact()
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


@pytest.mark.parametrize("method", ["refresh", "refit", "remove"])
def test_a_second_loss_while_the_first_is_undone(tmp_path: Path, method: str) -> None:
    cluster, *_ = fitted(tmp_path)
    arguments = ([4, 8],) if method == "remove" else ()
    before = cluster.digest
    first = cluster.shards.n_calls
    cluster.shards.losses = dict.fromkeys(range(first + 3, first + 120), (1, True))
    with pytest.raises(ShardError, match="shard 1 was lost 5 times"):
        cluster.coordinator.call("", method, *arguments)
    with pytest.raises(ShardError, match="shard 1 was lost 5 times"):
        cluster.coordinator.fitted().check_state()
    cluster.shards.losses = {}
    assert cluster.digest == before
    cluster.coordinator.fitted().check_state()
    cluster.coordinator.call("", method, *arguments)
    cluster.coordinator.fitted().check_state()


def test_losses_while_reading_are_not_part_of_an_operation(tmp_path: Path) -> None:
    cluster, _, y = fitted(tmp_path)
    cluster.coordinator.fitted().check_state()
    assert all(shard is not None and shard._begun is None for shard in cluster.shards.shards)
    cluster.shards.kill(1)
    assert sorted(cluster.coordinator.fitted().row_ids_.tolist()) == list(range(len(y)))


@pytest.mark.parametrize("seed", range(6))
def test_a_failed_rebalance_leaves_the_model_as_it_was(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster, *_ = fitted(tmp_path)
    cluster.coordinator.call("", "remove", [1])
    before, n_shards = cluster.digest, cluster.shards.n_shards
    opened = cluster.open
    made = []

    def open_failing(n_shards: int, generation: str) -> Unreliable:
        shards = opened(n_shards, generation)
        is_before = bool(rng.integers(2))
        shards.losses = dict.fromkeys(range(int(rng.integers(1, 7)), 99), (0, is_before))
        made.append(shards)
        return shards

    cluster.open = open_failing  # type: ignore[method-assign]
    with pytest.raises(ShardError, match="nothing has changed"):
        cluster.coordinator.rebalance("r", 3)
    assert all(shard is None for shards in made for shard in shards.shards)
    cluster.open = opened  # type: ignore[method-assign]
    assert cluster.digest == before
    cluster.coordinator.fitted().check_state()
    assert len(folders(tmp_path)) == 1
    cluster.coordinator.rebalance("r", 4)
    assert cluster.digest == before
    cluster.lose_node_half()
    assert cluster.digest == before
    cluster.coordinator.fitted().check_state()
    assert cluster.shards.n_shards == 4 != n_shards
    assert len(folders(tmp_path)) == 1


def test_a_call_is_interrupted(tmp_path: Path) -> None:
    cluster, *_ = fitted(tmp_path)
    before = cluster.digest
    coordinator, calls = cluster.coordinator, cluster.shards.call

    def interrupt(index: int, method: str, *arguments: Any) -> Any:
        coordinator.interrupt("r")
        return calls(index, method, *arguments)

    cluster.shards.call = interrupt  # type: ignore[method-assign]
    with pytest.raises(InterruptedCallError):
        coordinator.call("r", "refit")
    del cluster.shards.call
    assert cluster.digest == before
    coordinator.fitted().check_state()
    coordinator.call("s", "refit")
