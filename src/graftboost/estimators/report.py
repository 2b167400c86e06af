"""The report of an update."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.forgetting import Forgetting

COUNTS = (
    "trees_touched",
    "nodes_checked",
    "nodes_regrown",
    "rows_regrown",
    "nodes_shifted",
    "rows_shifted",
)


@dataclass(frozen=True)
class UpdateReport:
    """What `add`, `remove` or `update` did to a model.

    Attributes
    ----------
    strategy : {"in-place", "refit", "unknown"}
        Whether only the affected nodes were regrown, or all trees were refitted. The model is
        refitted when that is cheaper, when rows of an unseen class are added, or when a model
        without weights gets its first weights. It is unknown if the update was made by another
        process, which ended before it could report; the counts are 0 then.
    added_ids, removed_ids : ndarray of int64
        Ids of the rows that were added and removed.
    trees_touched : int
        Trees whose histograms include at least one of these rows.
    nodes_checked : int
        Nodes on the paths of these rows whose split was compared with the best candidate.
    nodes_regrown : int
        Nodes whose subtree was rebuilt.
    rows_regrown : int
        Sum of the row counts of the regrown nodes.
    nodes_shifted : int
        Nodes whose threshold was moved instead, within the same feature.
    rows_shifted : int
        Sum of the numbers of rows that changed sides at these nodes.
    forgetting : Forgetting or None
        How well the rows were forgotten or learned. None if that was not estimated: after a refit,
        which forgets all, with a fidelity of 0, and under other rules than ``"fidelity"``.
    seconds : mapping of str to float
        Time per phase: "reading" the arguments, "checking" and "regrowing" nodes, "refitting",
        and "total".
    rows_deferred : int
        Rows of this and earlier updates that were only booked: `regrow` is yet to be called for
        them.

    Examples
    --------
    >>> import numpy as np
    >>> seconds = {"checking": 0.0007, "regrowing": 0.0004, "total": 0.0012}
    >>> print(UpdateReport("in-place", np.array([], int), np.array([7]), 100, 530, 2, 61, 1, 8,
    ...                    Forgetting(0.9, 0.1, 0.04, 0.1, 1, 0), seconds))
    in-place update: 0 rows added, 1 removed in 1.2 ms
      trees touched         100
      nodes checked         530   0.7 ms
      nodes regrown           2   0.4 ms
      rows regrown           61
      nodes shifted           1
      rows shifted            8
      1 of 1 rows was clearly remembered, none is any more; estimated fidelity 0.90 ± 0.04
    """

    strategy: str
    added_ids: NDArray[np.int64]
    removed_ids: NDArray[np.int64]
    trees_touched: int
    nodes_checked: int
    nodes_regrown: int
    rows_regrown: int
    nodes_shifted: int
    rows_shifted: int
    forgetting: Forgetting | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    rows_deferred: int = 0

    @property
    def fidelity(self) -> float:
        """Estimated fidelity: 1 for a refit, nan if it was not estimated."""
        if self.strategy == "refit":
            return 1.0
        return math.nan if self.forgetting is None else self.forgetting.fidelity

    @property
    def memory_left(self) -> float:
        """Estimated memory of all changed rows that is left; 0 for a refit, nan if unknown."""
        if self.strategy == "refit":
            return 0.0
        return math.nan if self.forgetting is None else self.forgetting.memory_left

    @classmethod
    def lost(cls, added_ids: NDArray[np.int64], removed_ids: NDArray[np.int64]) -> UpdateReport:
        """Return the report of an update of which nothing but the changed rows is known."""
        return cls("unknown", added_ids, removed_ids, 0, 0, 0, 0, 0, 0)

    def __str__(self) -> str:
        if self.strategy == "unknown":
            return (
                f"update: {len(self.added_ids)} rows added, {len(self.removed_ids)} removed; "
                "the process that made it ended before it could report"
            )
        what = "in-place update" if self.strategy == "in-place" else "refit"
        rows = f"{len(self.added_ids)} rows added, {len(self.removed_ids)} removed"
        lines = [f"{what}: {rows} in {self._milliseconds('total')}"]
        if self.strategy == "in-place":
            lines += [f"  {name.replace('_', ' '):<16}{getattr(self, name):>9}" for name in COUNTS]
            for name, phase in (("nodes_checked", "checking"), ("nodes_regrown", "regrowing")):
                if phase in self.seconds:
                    lines[1 + COUNTS.index(name)] += f"   {self._milliseconds(phase)}"
        if self.forgetting is not None:
            words = self.forgetting.in_words(len(self.removed_ids), len(self.added_ids))
            lines.append(f"  {words}")
        if self.rows_deferred:
            lines.append(f"  {self.rows_deferred:,} rows are booked and not yet regrown")
        return "\n".join(lines)

    def _milliseconds(self, phase: str) -> str:
        return f"{1e3 * self.seconds.get(phase, float('nan')):.3g} ms"
