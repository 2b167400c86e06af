"""An operation is done once, by one node half, at the moment when it is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris

from graftboost import GraftBoostClassifier
from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.errors import OutcomeUnknownError
from graftboost.distributed.folder import LocalFolder
from graftboost.persistence.atomic_file import UncertainError

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
