"""What an update does to a model, ready for the engine: rows that come and rows that go."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.report import UpdateReport
from graftboost.row_ids import NO_IDS
from graftboost.sparse import AnyTable, for_engine

if TYPE_CHECKING:
    from graftboost._engine import Forest

RULES = ("regret", "rank")
# Read anew by every update, so that they may be set between two of them.
UPDATE_PARAMETERS = ("tolerance_rule", "tolerance", "stats_memory", "n_jobs")
MOST_PLACES = 2**62  # more than there are candidates, for an infinite tolerance


@dataclass(frozen=True)
class Rule:
    """When a split still passes.

    Attributes
    ----------
    name : {"regret", "rank"}
        Which rule.
    tolerance : float
        How much worse than the best candidate a split may be.
    places : int
        Among how many of its node's candidates it passes the rank rule.
    """

    name: str
    tolerance: float
    places: int

    @classmethod
    def of(cls, name: str, tolerance: float, split_sample: float, max_bins: int) -> Rule:
        """The rule that an estimator's parameters say."""
        places = tolerance * split_sample * max_bins
        return cls(name, float(tolerance), max(1, math.ceil(min(places, MOST_PLACES))))


@dataclass(frozen=True)
class AddedRows:
    """Rows to add, as the engine takes them.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        Features; categories by number.
    y : ndarray of float64
        Targets; classes by number.
    weight : ndarray of float64 or None
        Weights; None if each row weighs one.
    ids : ndarray of int64
        Ids.
    """

    X: AnyTable
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    ids: NDArray[np.int64]


@dataclass(frozen=True)
class Change:
    """One update.

    Attributes
    ----------
    rule : Rule
        When a split still passes.
    removed : ndarray of int64
        Ids of the rows that go.
    added : AddedRows or None
        The rows that come.
    classes : ndarray or None
        The classes there are then; None for a regression.
    relabel : list of int
        The number that each class of before has then.
    """

    rule: Rule
    removed: NDArray[np.int64] = field(default_factory=lambda: NO_IDS)
    added: AddedRows | None = None
    classes: NDArray[Any] | None = None
    relabel: list[int] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no row comes or goes."""
        return self.added is None and not len(self.removed)

    @property
    def added_ids(self) -> NDArray[np.int64]:
        """Ids of the rows that come."""
        return NO_IDS if self.added is None else self.added.ids

    def apply(
        self,
        forest: Forest,
        n_threads: int,
        *,
        argument: str = "row_ids",
        start: float | None = None,
    ) -> UpdateReport:
        """Update a forest.

        Parameters
        ----------
        forest : Forest
            What is updated. If this raises, it was not.
        n_threads : int
            Threads to use.
        argument : str, default="row_ids"
            What errors call the rows that go.
        start : float, default=None
            When the update began, by ``time.perf_counter``; now, if not given.

        Returns
        -------
        UpdateReport
            What was done.
        """
        read = time.perf_counter()
        seconds = {"reading": 0.0 if start is None else read - start}
        if self.is_empty:
            seconds["total"] = seconds["reading"]
            return UpdateReport("in-place", NO_IDS, NO_IDS, 0, 0, 0, 0, 0, 0, seconds)
        added = self.added
        counts = forest.update(
            None if added is None else for_engine(added.X),
            None if added is None else added.y,
            None if added is None else added.weight,
            None if added is None else added.ids,
            self.removed,
            np.array(self.relabel, dtype=np.int64),
            1 if self.classes is None else len(self.classes),
            self.rule.name,
            self.rule.tolerance,
            self.rule.places,
            n_threads,
            argument,
        )
        if counts.refitted:
            seconds["refitting"] = counts.seconds_refitting
        else:
            seconds["checking"] = counts.seconds_checking
            seconds["retraining"] = counts.seconds_mending
        seconds["total"] = seconds["reading"] + time.perf_counter() - read
        return UpdateReport(
            "refit" if counts.refitted else "in-place",
            self.added_ids,
            self.removed,
            counts.trees_touched,
            counts.nodes_checked,
            counts.nodes_retrained,
            counts.rows_retrained,
            counts.nodes_shifted,
            counts.rows_shifted,
            seconds,
        )
