"""The state that the stages of an update share, and the rule that decides which splits are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graftboost.reference.boosting import Model
from graftboost.reference.split_evaluation import Recorded, sums_over
from graftboost.reference.tree import Node


@dataclass(frozen=True)
class ToleranceRule:
    """Whether a split is kept, by its regret or by its rank among the candidates.

    With an infinite tolerance every split is kept, so the trees keep their structure.
    """

    kind: str = "regret"
    tolerance: float = 1.2
    top_candidates: int = 1

    @property
    def keeps_structure(self) -> bool:
        """Whether no node is ever regrown."""
        return math.isinf(self.tolerance)


class TreeUpdate:
    """One tree during an update. Its rows are already those that it has after the update."""

    def __init__(self, model: Model, t: int, rule: ToleranceRule) -> None:
        self.model, self.t, self.rule = model, t, rule
        self.settings = model.settings
        self.tree = model.trees[t]
        self.codes = {row_id: row.codes for row_id, row in model.rows.items()}
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

    def tolerates(self, best: float, current: float, n: int) -> bool:
        """Whether the regret is small enough to avoid work on n rows."""
        regret = (best - current) / self.model.noise * (len(self.model.rows) / n)
        return regret <= self.rule.tolerance
