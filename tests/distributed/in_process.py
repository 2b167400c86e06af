"""A distributed model in one process, parts of which can be lost."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from graftboost import GraftBoostClassifier
from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.errors import ShardLostError
from graftboost.distributed.folder import open_folder
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

    def gathered(self) -> Any:
        """Return the model with all rows, which needs no shards."""
        model = self.coordinator.fitted()
        return model._with_engine_model(model._engine_model.gather())

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


def fitted(path: Path, n_shards: int = 2, **options: Any) -> tuple[Cluster, Any, Any]:
    X, y = shuffled(load_iris)
    cluster = Cluster(path)
    cluster.fit(GraftBoostClassifier(**SMALL, **options), X, y, n_shards)
    return cluster, X, y


def folders(path: Path) -> list[Path]:
    return [entry for entry in path.iterdir() if entry.is_dir()]
