"""The files of a distributed model: replaced, compacted, erased, saved, and missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.distributed import shard
from graftboost.distributed.folder import LocalFolder
from graftboost.distributed.model_files import ModelFiles, check_name
from graftboost.store.digest import digest

from .in_process import SMALL, Cluster, fitted, folders, shuffled, with_categories


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


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: ("refit",),
        lambda X, y: ("refresh",),
        lambda X, y: ("remove", np.arange(60)),
        lambda X, y: ("remove", [1, 2], {"regrow": False}),
        lambda X, y: ("add", X[:3], y[:3]),
        lambda X, y: ("add", X[:3], y[:3], [2.0, 1.0, 0.5]),
        lambda X, y: ("add", X[:30], y[:30] + 1),
    ],
    ids=["refit", "refresh", "many", "booked", "added", "weighted", "an unseen class"],
)
def test_shards_are_restored_from_rows_that_were_written_after_any_change(
    tmp_path: Path, change: Any
) -> None:
    cluster, X, y = fitted(tmp_path)
    method, *arguments = change(X, y)
    named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    cluster.coordinator.call("", method, *arguments, **named)
    after = cluster.digest
    cluster.coordinator.compact()
    for index in range(cluster.shards.n_shards):
        cluster.shards.kill(index)
    cluster.coordinator.fitted().check_state()
    cluster.lose_node_half()
    cluster.coordinator.fitted().check_state()
    assert cluster.digest == after
    cluster.coordinator.call("", "remove", [100, 120])
    cluster.coordinator.fitted().check_state()


def test_a_sparse_shard_that_has_lost_all_rows_is_restored(tmp_path: Path) -> None:
    """It has rare columns that an update has laid out, and no row with any of them."""
    rng = np.random.default_rng(0)
    X = sparse.random(400, 60, 0.15, format="csr", random_state=0)
    y = (X[:, 0].toarray().ravel() + 0.1 * rng.normal(size=400) > 0.1).astype(int)
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    cluster = Cluster(tmp_path)
    cluster.fit(GraftBoostClassifier(**SMALL), X, y, 2)
    for rows in (np.arange(0, 100), np.arange(100, 200)):
        local.remove(rows)
        cluster.coordinator.call("", "remove", rows)
        cluster.coordinator.compact()
        cluster.shards.kill(0)
        assert cluster.digest == digest(local._engine_model)
        cluster.coordinator.fitted().check_state()
    local.remove([300])
    cluster.coordinator.call("", "remove", [300])
    assert cluster.digest == digest(local._engine_model)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_shard_that_has_lost_all_rows_gets_new_ones(tmp_path: Path, weighted: bool) -> None:
    X, y = shuffled(load_diabetes)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y)) if weighted else None
    local = GraftBoostRegressor(**SMALL).fit(X, y, weight)
    cluster = Cluster(tmp_path)
    more = {} if weight is None else {"sample_weight": weight}
    cluster.fit(GraftBoostRegressor(**SMALL), X, y, 4, **more)
    rows = np.arange(len(y) // 4 + 1)  # all of the first shard
    for change in (("remove", rows), ("add", X[:9], y[:9]), ("add", X[:9], y[:9], np.ones(9))):
        getattr(local, change[0])(*change[1:])
        cluster.coordinator.call("", *change)
        cluster.coordinator.compact()
        cluster.shards.kill(0)
        cluster.coordinator.fitted().check_state()
        assert cluster.digest == digest(local._engine_model)


@pytest.mark.parametrize("name", ["", "..", "a/b", "churn:v2", ".hidden", "x" * 101])
def test_names_that_are_no_names_of_folders_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must have 1 to 100 characters"):
        check_name(name)


def test_folders_with_other_files_are_not_touched(tmp_path: Path) -> None:
    mine = LocalFolder(tmp_path / "mine")
    mine.path.mkdir()
    (mine.path / "thesis.tex").write_text("mine")
    with pytest.raises(FileExistsError, match="files that are not those of a model"):
        ModelFiles(mine).check_own()
    ModelFiles(mine).remove_beginning()
    assert (mine.path / "thesis.tex").exists()
    cluster, *_ = fitted(tmp_path / "model")
    with pytest.raises(FileExistsError, match="files that are not those of a model"):
        cluster.coordinator.save(mine)
    for folder in (tmp_path / "model", tmp_path / "model" / "inside"):
        with pytest.raises(ValueError, match="the storage of the model itself"):
            cluster.coordinator.save(LocalFolder(folder))
        with pytest.raises(ValueError, match="the storage of the model itself"):
            cluster.coordinator.load("", LocalFolder(folder))
    ModelFiles(cluster.root).remove_beginning()  # there is a model
    cluster.lose_node_half()
    cluster.coordinator.fitted().check_state()


def test_a_model_is_saved_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The former one stays until the new one is complete."""
    cluster, *_ = fitted(tmp_path / "one")
    saved = LocalFolder(tmp_path / "saved")
    cluster.coordinator.save(saved)
    before = cluster.digest
    cluster.coordinator.call("", "remove", [4])

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(shard.ShardFiles, "write_rows", full)
        with pytest.raises(OSError, match="No space"):
            cluster.coordinator.save(saved)
    other = Cluster(tmp_path / "two")
    other.coordinator.load("", saved)
    assert other.digest == before
    cluster.coordinator.save(saved)
    other.coordinator.load("", saved)
    assert other.digest == cluster.digest
    assert len(folders(saved.path)) == 1
