"""Rows from files and frames, each shard some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.distributed.sources import ColumnRoles, GivenFrames, ParquetFiles
from graftboost.input import columns
from graftboost.store.digest import digest

from .in_process import SMALL, Cluster, shuffled


def frame_of(load: Any, named_index: str | None = None) -> pd.DataFrame:
    """A frame whose index is not that of its rows, as after a split."""
    X, y = shuffled(load)
    frame = pd.DataFrame(X).rename(columns=lambda c: f"x{c}").assign(y=y)
    frame.index = pd.Index(1000 + np.random.default_rng(1).permutation(len(y)), name=named_index)
    return frame


def written(frame: pd.DataFrame, path: Path, n_files: int) -> list[str]:
    paths = []
    for k in range(n_files):
        paths.append(str(path / f"{k}.parquet"))
        frame.iloc[k::n_files].to_parquet(paths[-1])
    return paths


@pytest.mark.parametrize("kind", ["files", "frames"])
@pytest.mark.parametrize("index", [None, "customer"])
def test_the_index_of_a_frame_is_no_feature(tmp_path: Path, kind: str, index: str | None) -> None:
    frame = frame_of(load_iris, index)
    roles = ColumnRoles("y", row_ids=index)
    paths = written(frame, tmp_path, 2)
    sources: list[Any] = (
        [ParquetFiles([path], roles) for path in paths]
        if kind == "files"
        else [GivenFrames([frame.iloc[k::2]], roles) for k in range(2)]
    )
    cluster = Cluster(tmp_path / "model")
    cluster.coordinator.fit("", GraftBoostClassifier(**SMALL), sources)
    ordered = pd.concat([frame.iloc[0::2], frame.iloc[1::2]])
    ids = ordered.index if index else None
    local = GraftBoostClassifier(**SMALL).fit(ordered.drop(columns="y"), ordered["y"], row_ids=ids)
    assert list(cluster.coordinator.fitted().feature_names_in_) == ["x0", "x1", "x2", "x3"]
    assert cluster.digest == digest(local._engine_model)


@pytest.mark.parametrize("load", [load_iris, load_diabetes])
def test_a_file_without_rows(tmp_path: Path, load: Any) -> None:
    frame = frame_of(load).reset_index(drop=True)
    paths = written(frame, tmp_path, 2)
    frame.iloc[:0].to_parquet(tmp_path / "empty.parquet")
    kind = GraftBoostClassifier if load is load_iris else GraftBoostRegressor
    roles = ColumnRoles("y")
    groups = [[paths[0]], [str(tmp_path / "empty.parquet")], [paths[1]]]
    cluster = Cluster(tmp_path / "model")
    cluster.coordinator.fit("", kind(**SMALL), [ParquetFiles(group, roles) for group in groups])
    ordered = pd.concat([frame.iloc[0::2], frame.iloc[1::2]])
    local = kind(**SMALL).fit(ordered.drop(columns="y"), ordered["y"])
    assert cluster.digest == digest(local._engine_model)
    cluster.coordinator.call("", "remove", [3])
    cluster.coordinator.compact()
    cluster.lose_node_half()
    cluster.coordinator.fitted().check_state()


def test_too_many_categories_of_all_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_CATEGORIES", 5)
    frame = pd.DataFrame({"x": list("abcd" * 5 + "efgh" * 5), "y": [0, 1] * 20})
    roles = ColumnRoles("y")
    halves = [GivenFrames([frame[:20]], roles), GivenFrames([frame[20:]], roles)]
    with pytest.raises(ValueError, match="has 8 categories, but at most 5 are possible"):
        Cluster(tmp_path).coordinator.fit("", GraftBoostClassifier(), halves)
