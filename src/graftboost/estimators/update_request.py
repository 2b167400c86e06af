"""An update request that has been validated and encoded for the engine."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.forgetting import Forgetting
from graftboost.estimators.report import UpdateReport
from graftboost.input.row_ids import NO_IDS
from graftboost.input.sparse import AnyTable, for_engine

if TYPE_CHECKING:
    from graftboost._engine import EngineModel, FidelityEstimate, UpdateCounts

RULES = ("fidelity", "regret", "rank")
TOLERANCES = {"regret": 3.0, "rank": 0.1}  # by default
# Every update reads these, so they may be set between two updates.
UPDATE_PARAMETERS = (
    "fidelity",
    "memory_floor",
    "update_rule",
    "tolerance",
    "stats_memory",
    "n_jobs",
)
SCALE_ERROR = 0.4  # memory is estimated to within a factor of about 1.5
LEAST_FIDELITY = 1e-12  # with 0, the engine does not survey the trees at all
MOST_CANDIDATES = 2**62  # more than any node has, for an infinite tolerance


def check_fidelity(fidelity: Any) -> None:
    """Raise ValueError if this cannot be the target of an update; None stands for the default."""
    is_number = isinstance(fidelity, Real) and not isinstance(fidelity, bool)
    if fidelity is not None and not (is_number and 0 <= fidelity <= 1):
        raise ValueError(
            f"fidelity is {fidelity!r}, but a fraction is expected. Pass a number from 0 to 1."
        )


def check_tolerance(update_rule: str, tolerance: float | None) -> None:
    """Raise ValueError if a tolerance is given that the rule does not use."""
    if update_rule == "fidelity" and tolerance is not None:
        raise ValueError(
            "tolerance applies to update_rule='regret' and update_rule='rank', but update_rule is "
            "'fidelity'. Set fidelity instead, or another update_rule."
        )


def check_regrow(regrow: Any, fidelity: float | None, update_rule: str) -> None:
    """Raise unless an update can regrow nodes, or leave that for later, as these arguments say."""
    if not isinstance(regrow, bool | np.bool_):
        raise TypeError(
            f"regrow is of type {type(regrow).__name__}, but True or False is expected."
        )
    if regrow:
        return
    if update_rule != "fidelity":
        raise ValueError(
            f"regrow=False applies to update_rule='fidelity', but update_rule is {update_rule!r}. "
            "Set another update_rule, or call without regrow."
        )
    if fidelity is not None:
        raise ValueError(
            "fidelity is given with regrow=False, which only books the rows. Pass fidelity to "
            "regrow() instead."
        )


def check_work(work: Any) -> None:
    """Raise ValueError if this cannot limit the work of `regrow`; None stands for no limit."""
    is_number = isinstance(work, Real) and not isinstance(work, bool)
    if work is not None and not (is_number and work > 0):
        raise ValueError(
            f"work is {work!r}, but a positive number is expected: the fraction of the work of a "
            "refit, such as 0.05."
        )


@dataclass(frozen=True)
class Rule:
    """The rule that decides which nodes an update regrows.

    Attributes
    ----------
    name : {"fidelity", "regret", "rank"}
        Which rule.
    fidelity : float
        The fidelity rule regrows as much as this target needs; 0 for the other rules.
    memory_floor : float
        The fidelity rule ignores rows that the model remembers by less; 0 for the other rules.
    tolerance : float
        How much worse than the best candidate a split may be; 0 for the fidelity rule.
    top_candidates : int
        The rank rule keeps a split that is among this many best candidates of its node.
    regrow : bool
        Whether nodes are regrown. Otherwise, rows are only booked; `RegrowRequest` regrows later.
    """

    name: str
    fidelity: float
    memory_floor: float
    tolerance: float
    top_candidates: int
    regrow: bool = True

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], fidelity: float | None = None, regrow: bool = True
    ) -> Rule:
        """Return the rule for the parameters of an estimator, with this target if it is given."""
        check_fidelity(fidelity)
        check_regrow(regrow, fidelity, parameters["update_rule"])
        name, tolerance = parameters["update_rule"], parameters["tolerance"]
        check_tolerance(name, tolerance)
        if name == "fidelity":
            target = parameters["fidelity"] if fidelity is None else fidelity
            return cls(name, float(target), float(parameters["memory_floor"]), 0.0, 1, bool(regrow))
        if fidelity is not None:
            raise ValueError(
                f"fidelity applies to update_rule='fidelity', but update_rule is {name!r}. "
                "Call without fidelity, or set another update_rule."
            )
        tolerance = float(TOLERANCES[name] if tolerance is None else tolerance)
        n = tolerance * parameters["split_sample"] * parameters["max_bins"]
        return cls(name, 0.0, 0.0, tolerance, max(1, math.ceil(min(n, MOST_CANDIDATES))))


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
            n_deferred = engine_model.rows_deferred
            return UpdateReport(
                "in-place", NO_IDS, NO_IDS, 0, 0, 0, 0, 0, 0, None, seconds, n_deferred
            )
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
            self.rule.fidelity,
            self.rule.memory_floor,
            self.rule.regrow,
            n_threads,
            argument,
        )
        return _report(counts, self.added_ids, self.removed, seconds, read)


@dataclass(frozen=True)
class RegrowRequest:
    """A request to regrow nodes for rows that earlier updates only booked.

    Attributes
    ----------
    rule : Rule
        The fidelity rule, with the target.
    work : float
        The most rows to work on, relative to all rows in all trees; from 1 on, the model may be
        refitted instead.
    """

    rule: Rule
    work: float = math.inf

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], work: float | None, fidelity: float | None
    ) -> RegrowRequest:
        """Return the request for the parameters of an estimator; raises what `Rule.of` raises."""
        check_work(work)
        rule = Rule.of(parameters, fidelity)
        if rule.name != "fidelity":
            raise ValueError(
                f"regrow applies to update_rule='fidelity', but update_rule is {rule.name!r}. Set "
                "another update_rule, or call refit()."
            )
        try:
            return cls(rule, math.inf if work is None else float(work))
        except OverflowError:
            return cls(rule)

    def apply(self, engine_model: EngineModel, n_threads: int) -> UpdateReport:
        """Regrow nodes of an engine model, which is unchanged if this raises."""
        start = time.perf_counter()
        counts = engine_model.regrow(
            self.work, self.rule.fidelity, self.rule.memory_floor, n_threads
        )
        return _report(counts, NO_IDS, NO_IDS, {}, start)


def _report(
    counts: UpdateCounts,
    added_ids: NDArray[np.int64],
    removed_ids: NDArray[np.int64],
    seconds: dict[str, float],
    start: float,
) -> UpdateReport:
    """Return the report of what the engine has done since `start`."""
    if counts.refitted:
        seconds["refitting"] = counts.seconds_refitting
    else:
        seconds["checking"] = counts.seconds_checking
        seconds["regrowing"] = counts.seconds_regrowing
    seconds["total"] = seconds.get("reading", 0.0) + time.perf_counter() - start
    return UpdateReport(
        "refit" if counts.refitted else "in-place",
        added_ids,
        removed_ids,
        counts.trees_touched,
        counts.nodes_checked,
        counts.nodes_regrown,
        counts.rows_regrown,
        counts.nodes_shifted,
        counts.rows_shifted,
        forgetting_of(counts.fidelity),
        seconds,
        counts.rows_deferred,
    )


def forgetting_of(estimate: FidelityEstimate | None) -> Forgetting | None:
    """Return the estimate of the engine, with the uncertainty of its scale."""
    if estimate is None:
        return None
    return Forgetting(
        estimate.achieved,
        estimate.left,
        math.hypot(estimate.left_error, SCALE_ERROR * estimate.left),
        *(
            (estimate.most_left, estimate.rows_remembered, estimate.rows_still_remembered)
            if estimate.is_of_rows
            else ()
        ),
    )
