"""What is left to regrow for rows that updates only booked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graftboost.estimators.forgetting import Forgetting
from graftboost.estimators.update_request import forgetting_of

if TYPE_CHECKING:
    from graftboost._engine import EngineModel


@dataclass(frozen=True)
class Pending:
    """Rows that were added or removed with ``regrow=False``, and what regrowing them takes.

    Attributes
    ----------
    rows_removed, rows_added : int
        How many rows were only booked since `regrow` last reached its target.
    nodes : int
        Nodes on their paths whose split is no longer the best.
    work : float
        The work of `regrow` to reach the target fidelity of the model, as a fraction of a refit.
    forgetting : Forgetting or None
        How well the rows are forgotten and learned now. None if there are none.

    Examples
    --------
    >>> print(Pending(37, 0, 210, 0.012, Forgetting(1.9, 3.1, 0.6)))
    0 rows added, 37 removed, not yet regrown: estimated fidelity 0.38 ± 0.05
    210 nodes have a better split; regrowing takes 1.2% of a refit
    """

    rows_removed: int
    rows_added: int
    nodes: int
    work: float
    forgetting: Forgetting | None

    @classmethod
    def of(
        cls, engine_model: EngineModel, fidelity: float, memory_floor: float, n_threads: int
    ) -> Pending:
        """Return what is pending in a model; nothing changes."""
        found = engine_model.pending(float(fidelity), memory_floor, n_threads)
        n_rows = found.n_removed + found.n_added
        return cls(
            found.n_removed,
            found.n_added,
            found.n_nodes,
            found.work,
            forgetting_of(found.now) if n_rows else None,
        )

    @property
    def fidelity(self) -> float:
        """The estimated fidelity for these rows as the model is now; nan if there are none."""
        return math.nan if self.forgetting is None else self.forgetting.fidelity

    @property
    def memory_left(self) -> float:
        """Estimated memory of all these rows that is left."""
        return 0.0 if self.forgetting is None else self.forgetting.memory_left

    def __str__(self) -> str:
        if self.forgetting is None:
            return "nothing to regrow"
        rows = f"{self.rows_added:,} rows added, {self.rows_removed:,} removed, not yet regrown"
        return (
            f"{rows}: {self.forgetting.in_words()}\n{self.nodes:,} nodes have a better split; "
            f"regrowing takes {self.work:.1%} of a refit"
        )
