"""The rows of one shard before training: read, described, and encoded like those of all shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.distributed.sources import Source
from graftboost.input.columns import Columns
from graftboost.input.holdout import hashes_to_hold_out, threshold_to_hold_out
from graftboost.input.row_ids import check_row_ids
from graftboost.input.rows import RowCounts, Rows
from graftboost.input.sparse import is_sparse
from graftboost.input.table import Table, read_table
from graftboost.input.targets import check_known_labels, check_target, count_labels
from graftboost.input.weights import check_weight
from graftboost.input.wiping import largest


@dataclass(frozen=True)
class PartFacts:
    """What there is to know about the rows of a shard before they are encoded.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    columns : dict
        `Columns.to_plain` of what is known from these rows.
    sparse : bool
        Whether the table is sparse.
    labels, counts : ndarray or None
        The classes that occur, and how often; None for a regression.
    has_ids, weighted, any_weight : bool
        Whether there are ids; whether there are weights other than 1; whether one is positive.
    """

    n_rows: int
    columns: dict[str, Any]
    sparse: bool
    labels: NDArray[Any] | None
    counts: NDArray[np.int64] | None
    has_ids: bool
    weighted: bool
    any_weight: bool


@dataclass(frozen=True)
class PartPlan:
    """How the rows of a shard are encoded.

    Attributes
    ----------
    columns : dict
        `Columns.to_plain` for all shards.
    classes : ndarray or None
        The classes of all shards; None for a regression.
    class_weights : ndarray or None
        The weight of each class.
    first_id : int or None
        The id of the first row, if rows have no ids of their own.
    weighted : bool
        Whether rows of some shard have weights.
    hold_out : tuple of float and int, or None
        The fraction of the rows that are held out for validation, and the seed.
    """

    columns: dict[str, Any]
    classes: NDArray[Any] | None
    class_weights: NDArray[np.float64] | None
    first_id: int | None
    weighted: bool
    hold_out: tuple[float, int] | None = None


@dataclass(frozen=True)
class PlannedFacts:
    """What there is to know about the encoded rows of a shard.

    Attributes
    ----------
    counts : RowCounts
        The rows to train on.
    largest_id : int
        The largest id, also of rows that are held out; -1 without rows.
    validation : Rows or None
        The rows that are held out.
    least_hash : int
        The least hash of an id, which decides what is held out if no row is.
    """

    counts: RowCounts
    largest_id: int
    validation: Rows | None
    least_hash: int


@dataclass
class Part:
    """The rows of one shard."""

    table: Table
    target: Any
    weight: NDArray[np.float64] | None
    ids: NDArray[np.int64] | None
    options: Mapping[str, Any]
    rows: Rows = None  # type: ignore[assignment]  # set by encode()

    @classmethod
    def read(cls, source: Source, options: Mapping[str, Any]) -> Part:
        """Read rows and check them, as far as that is possible without those of other shards."""
        raw = source.read()
        table = read_table(raw.X, may_be_empty=True)
        if not table.n_rows:
            ids = None if raw.row_ids is None else np.empty(0, np.int64)
            return cls(table, np.empty(0), None, ids, options)
        return cls(
            table,
            raw.y if options["classifies"] else check_target(raw.y, table.n_rows),
            check_weight(raw.sample_weight, table.n_rows, all_may_be_zero=True),
            check_row_ids(raw.row_ids, table.n_rows),
            options,
        )

    def facts(self) -> PartFacts:
        """Return what there is to know about the rows."""
        labels = counts = None
        if not self.table.n_rows:
            return PartFacts(0, {}, False, None, None, self.ids is not None, False, False)
        if self.options["classifies"]:
            labels, counts = count_labels(self.target, self.table.n_rows)
        columns = Columns.learn(self.table, self.options["categorical_features"])
        return PartFacts(
            self.table.n_rows,
            columns.to_plain(),
            is_sparse(self.table.columns),
            labels,
            counts,
            self.ids is not None,
            self.weight is not None,
            self.weight is None or bool(self.weight.any()),
        )

    def encode(self, plan: PartPlan) -> PlannedFacts:
        """Encode the rows."""
        n = self.table.n_rows
        columns = Columns.from_plain(plan.columns)
        target = self.target
        if plan.classes is not None and n:
            target = check_known_labels(self.target, n, plan.classes, "y")
        weight = self.weight
        if weight is None and plan.weighted:
            weight = np.ones(n)
        ids = self.ids
        if plan.first_id is not None:
            ids = np.arange(plan.first_id, plan.first_id + n, dtype=np.int64)
        assert ids is not None
        X = columns.encode(self.table) if n else np.empty((0, columns.n_features))
        rows = Rows(X, target, weight, ids)
        rows = rows.weighed_by_class(plan.class_weights)
        validation, least_hash = None, 0
        if plan.hold_out is not None:
            fraction, seed = plan.hold_out
            hashes = hashes_to_hold_out(ids, seed)
            held = hashes < threshold_to_hold_out(fraction)
            least_hash = int(hashes.min(initial=np.uint64(2**64 - 1)))
            rows, validation = rows.divide(held)
        self.rows = rows
        return replace(
            self.planned(largest(ids) if n else -1, plan),
            validation=validation,
            least_hash=least_hash,
        )

    def planned(self, largest_id: int, plan: PartPlan) -> PlannedFacts:
        """Return what there is to know about the encoded rows."""
        return PlannedFacts(RowCounts.of(self.rows, plan.classes), largest_id, None, 0)

    def hold_out_least(self, plan: PartPlan) -> PlannedFacts:
        """Hold out the row with the least hash, because no shard has drawn one."""
        assert plan.hold_out is not None
        assert self.rows.ids is not None
        hashes = hashes_to_hold_out(self.rows.ids, plan.hold_out[1])
        self.rows, validation = self.rows.divide(hashes == hashes.min())
        return replace(self.planned(-1, plan), validation=validation)
