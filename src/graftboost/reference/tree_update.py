"""The state that the stages of an update share, and the rule that selects what is regrown."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graftboost.reference.boosting import Model
from graftboost.reference.split_evaluation import Recorded, sums_over
from graftboost.reference.tree import Node

ROWS_PER_MOVE = 5  # moving a row costs as much as regrowing this many
LARGEST_SHIFT = 4  # regrowing is cheaper than moving more than one row in this many


@dataclass(frozen=True)
class UpdateRule:
    """Which nodes an update regrows.

    "fidelity" regrows as much as a target fidelity needs, for rows of which at least `memory_floor`
    is remembered. "regret" and "rank" keep a split by its regret or by its rank among the
    candidates. With a fidelity of 0 or an infinite tolerance the trees keep their structure.
    Without `regrow`, rows are only booked (see `deferral`).
    """

    kind: str = "fidelity"
    tolerance: float = 0.0
    top_candidates: int = 1
    fidelity: float = 0.85
    memory_floor: float = 0.02
    regrow: bool = True

    @property
    def keeps_structure(self) -> bool:
        """Whether no node is ever regrown."""
        return self.fidelity == 0 if self.kind == "fidelity" else math.isinf(self.tolerance)


class TreeUpdate:
    """One tree during an update. Its rows are already those that it has after the update."""

    def __init__(self, model: Model, t: int, rule: UpdateRule) -> None:
        self.model, self.t, self.rule = model, t, rule
        self.settings = model.settings
        self.tree = model.trees[t]
        self.codes = {row_id: row.codes for row_id, row in model.rows.items()}
        self.noise = model.variance(t) * model.mean_weight()  # the scale of gains
        self.tolerance = math.inf if rule.kind == "fidelity" else rule.tolerance
        self.n_regrown = 0

    @property
    def recorded(self) -> Recorded:
        """The sums of each row's recorded gradient in this tree."""
        return self.model.recorded(self.t)

    def recompute_sums(self) -> None:
        """Recompute the sums of every node from its rows."""
        recorded = self.recorded
        for node in self.tree.nodes:
            node.sums = sums_over(node.rows, recorded)

    def current_gain(self, node: Node) -> float:
        """The gain of a node's current split, computed from the sums of its left child."""
        left = self.tree.nodes[node.left].sums
        return self.settings.gain(node.sums, self.settings.score(node.sums, left))

    def relative_regret(self, best: float, current: float, n: int) -> float:
        """The regret, on a scale that is the same for all trees, relative to work on n rows."""
        return (best - current) / self.noise * (len(self.model.rows) / n)

    def tolerates(self, best: float, current: float, n: int) -> bool:
        """Whether the regret is small enough to avoid work on n rows."""
        return self.relative_regret(best, current, n) <= self.tolerance
