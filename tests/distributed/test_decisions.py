"""An operation is done once, by one node half, at the moment when it is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris

from graftboost import GraftBoostClassifier
from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.errors import OutcomeUnknownError, ShardError
from graftboost.distributed.folder import LocalFolder
from graftboost.distributed.model_files import ModelFiles
from graftboost.persistence.atomic_file import UncertainError
from graftboost.store.digest import digest

from .in_process import SMALL, Cluster, fitted, shuffled


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


class FailingFolder(LocalFolder):
    """A folder whose writes of decisions fail."""

    failures: list[type[OSError]]

    def create(self, name: str, header: Any, arrays: Any) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure is UncertainError:  # it has been written nevertheless
            super().create(name, header, arrays)
        if failure is not None:
            raise failure("the disk has failed")
        super().create(name, header, arrays)


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


def test_a_former_node_half_decides_while_another_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it decides before the other one has taken over is kept."""
    cluster, *_ = fitted(tmp_path)
    former, shards = cluster.coordinator, cluster.shards
    write, late = ModelFiles.write_decision, iter([True])

    def write_late(files: ModelFiles, decision: Any) -> None:
        if next(late, False):
            former.call("late", "remove", [3])
        write(files, decision)

    cluster.open = lambda *_: shards  # type: ignore[method-assign]
    cluster.lose_node_half()
    monkeypatch.setattr(ModelFiles, "write_decision", write_late)
    assert 3 not in cluster.coordinator.fitted().row_ids_
    cluster.coordinator.fitted().check_state()
    assert cluster.coordinator.call("late", "remove", [3]).removed_ids.tolist() == [3]


def test_a_former_node_half_decides_too_late(tmp_path: Path) -> None:
    """Its shards could complete the operation, but another node half has taken over."""
    cluster, *_ = fitted(tmp_path)
    former, shards = cluster.coordinator, cluster.shards
    before = cluster.digest
    prepare = shards.shards[1].prepare  # type: ignore[union-attr]

    def prepare_late(*arguments: Any) -> None:
        prepare(*arguments)
        shards.shards[1].prepare = prepare  # type: ignore[union-attr,method-assign]
        assert cluster.coordinator.fitted().n_rows_ == 150

    cluster.open = lambda *_: shards  # type: ignore[method-assign]
    cluster.lose_node_half()
    shards.shards[1].prepare = prepare_late  # type: ignore[union-attr,method-assign]
    with pytest.raises(ShardError, match="This call has changed nothing"):
        former.call("late", "remove", [3])
    assert cluster.digest == before
    cluster.coordinator.fitted().check_state()
    cluster.coordinator.call("", "remove", [5])
    cluster.coordinator.fitted().check_state()


def test_two_clusters_use_the_same_files(tmp_path: Path) -> None:
    """Each takes over from the other; a call that fails has changed nothing."""
    one, X, y = fitted(tmp_path)
    two = Cluster(tmp_path)
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    for row in range(6):
        cluster = (one, two)[row % 2]
        for attempt in range(2):
            try:
                cluster.coordinator.call(f"{row}", "remove", [row])
                break
            except (ShardError, OutcomeUnknownError):
                assert attempt == 0
                assert row > 0
        local.remove([row])
        assert cluster.digest == digest(local._engine_model)
        cluster.coordinator.compact()
        cluster.coordinator.fitted().check_state()


def test_removed_ids_are_erased_by_compacting(tmp_path: Path) -> None:
    cluster, *_ = fitted(tmp_path)
    cluster.coordinator.call("r", "remove", [77])
    decisions = ModelFiles(cluster.root)
    assert decisions.read_decision(decisions.latest()).request.removed_ids.tolist() == [77]
    cluster.coordinator.compact()
    cluster.lose_node_half()
    known = cluster.coordinator.call("r", "remove", [77])  # it is still known to be done
    assert not len(known.removed_ids)
    assert 77 not in cluster.coordinator.fitted().row_ids_
