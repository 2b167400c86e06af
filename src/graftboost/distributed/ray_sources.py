"""Rows for the shards of a Ray cluster."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray

from graftboost.distributed.sources import (
    ColumnRoles,
    GivenFrames,
    ParquetFiles,
    RawRows,
    Source,
)
from graftboost.input.row_ids import check_length
from graftboost.input.table import read_table, take_rows


@dataclass(frozen=True)
class ReferredFrames:
    """Data frames in the object store of Ray, which the shard fetches itself."""

    references: Sequence[Any]
    roles: ColumnRoles

    def read(self) -> RawRows:
        """See `Source`."""
        return GivenFrames(ray.get(list(self.references)), self.roles).read()


@dataclass(frozen=True)
class ReferredRows:
    """Rows in the object store of Ray, which the shard fetches itself."""

    reference: Any

    def read(self) -> RawRows:
        """See `Source`."""
        rows: RawRows = ray.get(self.reference)
        return rows


def divide_rows(
    X: Any, y: Any, sample_weight: Any, row_ids: Any, n_shards: int, drop: Sequence[str] = ()
) -> list[Source]:
    """Return a source of rows for each shard."""
    if is_dataset(X):
        roles = _roles(y, sample_weight, row_ids, drop)
        blocks = X.to_arrow_refs()
        return [ReferredFrames(piece, roles) for piece in _pieces(blocks, n_shards, "blocks of X")]
    if isinstance(X, list | tuple) and X and isinstance(X[0], ray.ObjectRef):
        roles = _roles(y, sample_weight, row_ids, drop)
        return [ReferredFrames(piece, roles) for piece in _pieces(X, n_shards, "references")]
    if isinstance(X, list | tuple) and X and isinstance(X[0], str | os.PathLike):
        roles = _roles(y, sample_weight, row_ids, drop)
        paths = [os.fspath(path) for path in X]
        return [ParquetFiles(piece, roles) for piece in _pieces(paths, n_shards, "files")]
    return _divide_table(X, y, sample_weight, row_ids, n_shards)


def is_dataset(X: Any) -> bool:
    """Tell whether X is a Dataset of Ray."""
    return type(X).__module__.startswith("ray.data")


def _roles(y: Any, sample_weight: Any, row_ids: Any, drop: Sequence[str]) -> ColumnRoles:
    for argument, value in (("y", y), ("sample_weight", sample_weight), ("row_ids", row_ids)):
        if not isinstance(value, str) and (value is not None or argument == "y"):
            raise TypeError(
                f"{argument} is of type {type(value).__name__}, but X is not a local table, so the "
                "name of a column is expected."
            )
    return ColumnRoles(y, row_ids, sample_weight, tuple(drop))


def _pieces(items: Sequence[Any], n_shards: int, what: str) -> list[Sequence[Any]]:
    if len(items) < n_shards:
        raise ValueError(
            f"X consists of {len(items)} {what}, which are too few for n_shards={n_shards}. Pass "
            "more, or decrease n_shards."
        )
    ends = np.linspace(0, len(items), n_shards + 1).astype(int)
    return [items[begin:end] for begin, end in itertools.pairwise(ends)]


def _divide_table(X: Any, y: Any, sample_weight: Any, row_ids: Any, n_shards: int) -> list[Source]:
    n_rows = read_table(X).n_rows
    if n_rows < n_shards:
        raise ValueError(
            f"X has {n_rows} rows, which are too few for n_shards={n_shards}. Decrease n_shards."
        )
    targets = np.asarray(y)
    check_length(targets, n_rows, "y")
    ids = None if row_ids is None else np.asarray(row_ids)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    ends = np.linspace(0, n_rows, n_shards + 1).astype(int)
    sources: list[Source] = []
    for begin, end in itertools.pairwise(ends):
        piece = slice(int(begin), int(end))
        rows = RawRows(
            take_rows(X, piece),
            targets[piece],
            None if weight is None else weight[piece],
            None if ids is None else ids[piece],
        )
        sources.append(ReferredRows(ray.put(rows)))
    return sources
