"""What an update did, as a value that prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

COUNTS = (
    "trees_touched",
    "nodes_checked",
    "nodes_retrained",
    "rows_retrained",
    "nodes_shifted",
    "rows_shifted",
)


@dataclass(frozen=True)
class UpdateReport:
    """What `add`, `remove` or `update` did to a model.

    Attributes
    ----------
    strategy : {"in-place", "refit"}
        Whether the trees were changed where needed, or all were trained again because that was
        cheaper or because the model had to become another (more classes, first weights).
    added_ids, removed_ids : ndarray of int64
        Ids of the rows that came and went.
    trees_touched : int
        Trees that hold sums of one of these rows.
    nodes_checked : int
        Nodes on their paths, whose split was compared with the best candidate.
    nodes_retrained : int
        Nodes under which the tree was grown again.
    rows_retrained : int
        Rows that these nodes held, all together.
    nodes_shifted : int
        Nodes whose threshold moved instead, and with it the rows between.
    rows_shifted : int
        These rows, all together.
    seconds : mapping of str to float
        Time by phase: "reading" the arguments, "checking" and "retraining" nodes, "refitting", and
        "total".

    Examples
    --------
    >>> import numpy as np
    >>> print(UpdateReport("in-place", np.array([], int), np.array([7]), 100, 530, 2, 61, 1, 8,
    ...                    {"checking": 0.0007, "retraining": 0.0004, "total": 0.0012}))
    in-place update: 0 rows added, 1 removed in 1.2 ms
      trees touched         100
      nodes checked         530   0.7 ms
      nodes retrained         2   0.4 ms
      rows retrained         61
      nodes shifted           1
      rows shifted            8
    """

    strategy: str
    added_ids: NDArray[np.int64]
    removed_ids: NDArray[np.int64]
    trees_touched: int
    nodes_checked: int
    nodes_retrained: int
    rows_retrained: int
    nodes_shifted: int
    rows_shifted: int
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        what = "in-place update" if self.strategy == "in-place" else "refit"
        rows = f"{len(self.added_ids)} rows added, {len(self.removed_ids)} removed"
        lines = [f"{what}: {rows} in {self._milliseconds('total')}"]
        if self.strategy == "in-place":
            lines += [f"  {name.replace('_', ' '):<16}{getattr(self, name):>9}" for name in COUNTS]
            for name, phase in (("nodes_checked", "checking"), ("nodes_retrained", "retraining")):
                if phase in self.seconds:
                    lines[1 + COUNTS.index(name)] += f"   {self._milliseconds(phase)}"
        return "\n".join(lines)

    def _milliseconds(self, phase: str) -> str:
        return f"{1e3 * self.seconds.get(phase, float('nan')):.3g} ms"
