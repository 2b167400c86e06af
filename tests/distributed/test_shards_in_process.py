"""Models over shards in one process: the same as local ones, through the loss of shards."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.distributed import shard
from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.errors import (
    InterruptedCallError,
    OutcomeUnknownError,
    ShardError,
    ShardLostError,
)
from graftboost.distributed.folder import LocalFolder, open_folder
from graftboost.distributed.shards import ShardsInProcess
from graftboost.distributed.sources import GivenRows, RawRows
from graftboost.persistence.atomic_file import UncertainError
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
    """A coordinator with shards in this process, for which it is the host."""

    def __init__(self, path: Path | str) -> None:
        self.root = open_folder(path)
        self.coordinator = Coordinator(self.root, self)

    def open(self, n_shards: int, generation: str) -> Unreliable:
        self.shards = Unreliable(n_shards, self.root.inside(generation))
        return self.shards

    def close_others(self, generation: str) -> None:
        pass

    def fit(self, estimator: Any, X: Any, y: Any, n_shards: int, **more: Any) -> None:
        ends = np.linspace(0, len(y), n_shards + 1).astype(int)
        sources = [
            GivenRows(
                RawRows(X[begin:end], y[begin:end], **{k: v[begin:end] for k, v in more.items()})
            )
            for begin, end in itertools.pairwise(ends)
        ]
        self.coordinator.fit("", estimator, sources)

    def lose_node_half(self) -> None:
        self.coordinator = Coordinator(self.root, self)

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
    cluster.coordinator.rebalance("", 3)
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
    report = cluster.coordinator.call("one", "remove", [1])
    assert cluster.coordinator.call("one", "remove", [1]) is report
    cluster.lose_node_half()
    known = cluster.coordinator.call("one", "remove", [1])
    assert known.removed_ids.tolist() == [1]
    assert cluster.coordinator.call("two", "add", X[:2], y[:2]) is not None
    cluster.lose_node_half()
    assert cluster.coordinator.call("two", "add", X[:2], y[:2]).added_ids.tolist() == [150, 151]
    assert cluster.coordinator.call("one", "remove", [1]) is not None
    assert 1 not in cluster.coordinator.fitted().row_ids_


def fitted(path: Path, n_shards: int = 2, **options: Any) -> tuple[Cluster, Any, Any]:
    X, y = shuffled(load_iris)
    cluster = Cluster(path)
    cluster.fit(GraftBoostClassifier(**SMALL, **options), X, y, n_shards)
    return cluster, X, y


class FailingFolder(LocalFolder):
    """A folder whose writes of decisions fail."""

    failures: list[type[OSError]]

    def write(self, name: str, header: Any, arrays: Any) -> None:
        failure = self.failures.pop(0) if name.startswith("decided") and self.failures else None
        if failure is UncertainError:  # it has been replaced nevertheless
            super().write(name, header, arrays)
        if failure is not None:
            raise failure("the disk has failed")
        super().write(name, header, arrays)


@pytest.mark.parametrize(
    ("failures", "error", "is_done"),
    [
        ([OSError], OSError, False),
        ([UncertainError], UncertainError, False),
        ([UncertainError, OSError], OutcomeUnknownError, True),
    ],
)
def test_a_decision_that_cannot_be_written(
    tmp_path: Path, failures: list[type[OSError]], error: type[Exception], is_done: bool
) -> None:
    """A call that raises has changed nothing, and if that is not certain, the files tell."""
    cluster, *_ = fitted(tmp_path)
    folder = FailingFolder(tmp_path)
    folder.failures = []
    cluster.coordinator = Coordinator(folder, cluster)
    before = cluster.digest
    folder.failures = list(failures)
    with pytest.raises(error):
        cluster.coordinator.call("r", "remove", [3, 5])
    assert (cluster.digest != before) == is_done
    assert (3 in cluster.coordinator.fitted().row_ids_) != is_done
    cluster.coordinator.fitted().check_state()
    cluster.coordinator.call("s", "remove", [7])
    after = cluster.digest
    cluster.lose_node_half()
    assert cluster.digest == after


def test_a_former_node_half_cannot_change_anything(tmp_path: Path) -> None:
    cluster, *_ = fitted(tmp_path)
    former = cluster.coordinator
    shards = cluster.shards
    cluster.open = lambda *_: shards  # type: ignore[method-assign]
    cluster.lose_node_half()
    cluster.coordinator.call("a", "remove", [3])
    with pytest.raises(OutcomeUnknownError, match="Another process has become the node half"):
        former.call("b", "remove", [5])
    after = cluster.digest
    cluster.coordinator.call("c", "refresh")
    cluster.lose_node_half()
    assert 5 in cluster.coordinator.fitted().row_ids_
    assert 3 not in cluster.coordinator.fitted().row_ids_
    assert cluster.digest != after


def test_a_former_node_half_decides_at_the_last_moment(tmp_path: Path) -> None:
    """What it decided before shards refuse it is kept."""
    cluster, *_ = fitted(tmp_path)
    former, shards = cluster.coordinator, cluster.shards
    settle = shards.shards[0].settle  # type: ignore[union-attr]

    def settle_late(*arguments: Any) -> Any:
        shards.shards[0].settle = settle  # type: ignore[union-attr,method-assign]
        former.call("late", "remove", [3])
        return settle(*arguments)

    cluster.open = lambda *_: shards  # type: ignore[method-assign]
    cluster.coordinator = Coordinator(cluster.root, cluster)
    shards.shards[0].settle = settle_late  # type: ignore[union-attr,method-assign]
    assert 3 not in cluster.coordinator.fitted().row_ids_
    cluster.coordinator.fitted().check_state()
    assert cluster.coordinator.call("late", "remove", [3]).removed_ids.tolist() == [3]


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


def folders(path: Path) -> list[Path]:
    return [entry for entry in path.iterdir() if entry.is_dir()]


def test_a_folder_is_used_again(tmp_path: Path) -> None:
    """A new model replaces the old one when it is complete, and not before."""
    cluster, X, y = fitted(tmp_path)
    cluster.coordinator.call("", "remove", [1])
    before = cluster.digest
    with pytest.raises(ValueError, match="row_ids contains 3 more than once"):
        cluster.fit(GraftBoostClassifier(), X, y, 3, row_ids=np.minimum(np.arange(len(y)), 3))
    assert cluster.digest == before
    cluster.lose_node_half()
    assert cluster.digest == before
    cluster.fit(GraftBoostClassifier(**SMALL, learning_rate=0.3), X, y, 3)
    local = GraftBoostClassifier(**SMALL, learning_rate=0.3).fit(X, y)
    assert cluster.digest == digest(local._engine_model)
    cluster.lose_node_half()
    assert cluster.digest == digest(local._engine_model)
    assert len(folders(tmp_path)) == 1
    assert len([name for name in cluster.root.names() if name.startswith("model-")]) == 1


def test_shards_are_compacted_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "COMPACT_EVERY", 3)
    cluster, *_ = fitted(tmp_path)
    for row in range(7):
        cluster.coordinator.call("", "remove", [row])
        files = [path.name for path in folders(tmp_path)[0].glob("shard-0/*")]
        assert len([name for name in files if name.startswith("rows-")]) == 1
        assert len([name for name in files if name.startswith("operation-")]) == (row + 2) % 3
    after = cluster.digest
    left_over = folders(tmp_path)[0] / "shard-1" / ".rows-000000000009-x.12345678.tmp"
    left_over.write_bytes(b"rows")
    cluster.lose_node_half()
    assert cluster.digest == after
    assert not left_over.exists()


def test_a_disk_that_is_full_while_compacting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "COMPACT_EVERY", 1)
    cluster, *_ = fitted(tmp_path)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(shard.ShardFiles, "write_rows", full)
        with pytest.warns(RuntimeWarning, match="shard 0 was not compacted"):
            assert cluster.coordinator.call("", "remove", [1]).removed_ids.tolist() == [1]
    after = cluster.digest
    cluster.lose_node_half()
    assert cluster.digest == after


def test_rows_are_erased_by_compacting(tmp_path: Path) -> None:
    X, y = shuffled(load_breast_cancer)
    frame = with_categories(X)
    frame["x0"] = frame["x0"].cat.add_categories(["somebody"])
    frame.loc[5, "x0"] = "somebody"
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), frame, y, 2)
    cluster.coordinator.call("", "remove", [5])
    assert any(b"somebody" in path.read_bytes() for path in tmp_path.glob("model-*"))
    cluster.coordinator.compact()
    assert not any(b"somebody" in path.read_bytes() for path in tmp_path.glob("model-*"))


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


def test_saving_and_loading(tmp_path: Path) -> None:
    cluster, *_ = fitted(tmp_path / "one", n_shards=3)
    cluster.coordinator.call("", "remove", [4])
    saved = LocalFolder(tmp_path / "saved")
    cluster.coordinator.save(saved)
    before = cluster.digest
    cluster.coordinator.call("", "remove", [5])
    other = Cluster(tmp_path / "two")
    other.coordinator.load("", saved)
    assert other.digest == before
    other.coordinator.fitted().check_state()
    other.coordinator.call("", "remove", [5])
    assert other.digest == cluster.digest
    other.lose_node_half()
    assert other.digest == cluster.digest
    with pytest.raises(FileNotFoundError, match="there is no model"):
        other.coordinator.load("", LocalFolder(tmp_path / "nothing"))


def test_an_object_store() -> None:
    pytest.importorskip("fsspec")
    X, y = shuffled(load_iris)
    cluster = Cluster("memory://models/iris")
    cluster.fit(GraftBoostClassifier(**SMALL), X, y, 2)
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    cluster.coordinator.call("", "remove", [3])
    local.remove([3])
    cluster.coordinator.rebalance("", 3)
    cluster.lose_node_half()
    assert cluster.digest == digest(local._engine_model)
    assert len(cluster.root.folders()) == 1
    cluster.coordinator.compact()
    cluster.shards.kill(1)
    cluster.coordinator.fitted().check_state()


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    cluster, *_ = fitted(tmp_path)
    cluster.coordinator.call("", "remove", [4])
    for path in folders(tmp_path)[0].glob("shard-1/operation-*"):
        path.unlink()
    cluster.lose_node_half()
    with pytest.raises(OSError, match=r"shard-1 lack operation 2.*Restore them from a backup"):
        cluster.coordinator.fitted()


def test_a_model_that_is_not_updatable(tmp_path: Path) -> None:
    cluster, X, y = fitted(tmp_path, updatable=False)
    local = GraftBoostClassifier(**SMALL, updatable=False).fit(X, y)
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
