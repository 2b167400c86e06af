"""What a model remembers of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RowMemory:
    """What a model remembers of some of its rows, and what it would take to forget them.

    The memory of a row is the estimated increase of its loss in a model that is trained without
    these rows, besides the increase that follows from leaf values alone. It is in nats; for
    regression, squared errors are halved and divided by the residual variance.

    Attributes
    ----------
    row_ids : ndarray of int64
        Ids of the rows.
    memory : ndarray of float64
        The memory of each row, if all of them are removed together. Values around zero, also
        negative ones, mean that nothing is remembered.
    memory_floor : float
        Rows with less than this are not considered as remembered.
    work : float
        What removing these rows would regrow, as a fraction of the work of a refit.

    Examples
    --------
    >>> print(RowMemory(np.array([3, 8]), np.array([0.4, 0.001]), 0.02, 0.013))
    1 of 2 rows is clearly remembered; forgetting them takes 1.3% of a refit
      row 3       0.400
    """

    row_ids: NDArray[np.int64]
    memory: NDArray[np.float64]
    memory_floor: float
    work: float

    @property
    def remembered_ids(self) -> NDArray[np.int64]:
        """Ids of the rows that are remembered, the most remembered first."""
        order = np.argsort(-self.memory, kind="stable")
        return self.row_ids[order[self._is_remembered[order]]]

    @property
    def _is_remembered(self) -> NDArray[np.bool_]:
        return (self.memory > 0) & (self.memory >= self.memory_floor)

    def __str__(self) -> str:
        most = 5  # rows that are listed
        n = int(self._is_remembered.sum())
        if not n:
            return f"none of {len(self.row_ids):,} rows is clearly remembered"
        are = "is" if n == 1 else "are"
        remembered = f"{n:,} of {len(self.row_ids):,} rows {are} clearly remembered"
        lines = [f"{remembered}; forgetting them takes {self.work:.1%} of a refit"]
        by_id = dict(zip(self.row_ids.tolist(), self.memory.tolist(), strict=True))
        lines += [f"  row {i:<8}{by_id[i]:.3f}" for i in self.remembered_ids[:most].tolist()]
        if n > most:
            lines.append(f"  and {n - most:,} more")
        return "\n".join(lines)
