"""An update request that has been validated and encoded for the engine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.report import UpdateReport
from graftboost.input.row_ids import NO_IDS
from graftboost.input.sparse import AnyTable, for_engine

if TYPE_CHECKING:
    from graftboost._engine import EngineModel

RULES = ("regret", "rank")
# Every update reads these, so they may be set between two updates.
UPDATE_PARAMETERS = ("tolerance_rule", "tolerance", "stats_memory", "n_jobs")
MOST_CANDIDATES = 2**62  # more than any node has, for an infinite tolerance


@dataclass(frozen=True)
class Rule:
    """The rule that decides whether an update keeps a split.

    Attributes
    ----------
    name : {"regret", "rank"}
        Which rule.
    tolerance : float
        How much worse than the best candidate a split may be.
    top_candidates : int
        The rank rule keeps a split that is among this many best candidates of its node.
    """

    name: str
    tolerance: float
    top_candidates: int

    @classmethod
    def of(cls, name: str, tolerance: float, split_sample: float, max_bins: int) -> Rule:
        """Return the rule for the parameters of an estimator."""
        n = tolerance * split_sample * max_bins
        return cls(name, float(tolerance), max(1, math.ceil(min(n, MOST_CANDIDATES))))


@dataclass(frozen=True)
class AddedRows:
    """Rows to add, encoded for the engine.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        Features; categories are encoded as numbers.
    y : ndarray of float64
        Targets; classes are encoded as numbers.
    weight : ndarray of float64 or None
        Weights; None if all are one.
    ids : ndarray of int64
        Ids.
    """

    X: AnyTable
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    ids: NDArray[np.int64]


@dataclass(frozen=True)
class UpdateRequest:
    """One update request.

    Attributes
    ----------
    rule : Rule
        Decides which splits are kept.
    removed : ndarray of int64
        Ids of the rows to remove.
    added : AddedRows or None
        The rows to add.
    classes : ndarray or None
        The classes after the update; None for a regression.
    relabel : list of int
        The new number of each class known before.
    """

    rule: Rule
    removed: NDArray[np.int64] = field(default_factory=lambda: NO_IDS)
    added: AddedRows | None = None
    classes: NDArray[Any] | None = None
    relabel: list[int] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no rows are added or removed."""
        return self.added is None and not len(self.removed)

    @property
    def added_ids(self) -> NDArray[np.int64]:
        """Ids of the rows to add."""
        return NO_IDS if self.added is None else self.added.ids

    def apply(
        self,
        engine_model: EngineModel,
        n_threads: int,
        *,
        argument: str = "row_ids",
        start: float | None = None,
    ) -> UpdateReport:
        """Apply the update to an engine model.

        Parameters
        ----------
        engine_model : EngineModel
            The engine model to update. It is unchanged if this method raises.
        n_threads : int
            Number of threads.
        argument : str, default="row_ids"
            The argument name that error messages use for the rows to remove.
        start : float, default=None
            When the update began, by ``time.perf_counter``. Default: now.

        Returns
        -------
        UpdateReport
            What the update did.
        """
        read = time.perf_counter()
        seconds = {"reading": 0.0 if start is None else read - start}
        if self.is_empty:
            seconds["total"] = seconds["reading"]
            return UpdateReport("in-place", NO_IDS, NO_IDS, 0, 0, 0, 0, 0, 0, seconds)
        added = self.added
        counts = engine_model.update(
            None if added is None else for_engine(added.X),
            None if added is None else added.y,
            None if added is None else added.weight,
            None if added is None else added.ids,
            self.removed,
            np.array(self.relabel, dtype=np.int64),
            1 if self.classes is None else len(self.classes),
            self.rule.name,
            self.rule.tolerance,
            self.rule.top_candidates,
            n_threads,
            argument,
        )
        if counts.refitted:
            seconds["refitting"] = counts.seconds_refitting
        else:
            seconds["checking"] = counts.seconds_checking
            seconds["regrowing"] = counts.seconds_regrowing
        seconds["total"] = seconds["reading"] + time.perf_counter() - read
        return UpdateReport(
            "refit" if counts.refitted else "in-place",
            self.added_ids,
            self.removed,
            counts.trees_touched,
            counts.nodes_checked,
            counts.nodes_regrown,
            counts.rows_regrown,
            counts.nodes_shifted,
            counts.rows_shifted,
            seconds,
        )
