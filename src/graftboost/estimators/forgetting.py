"""How well an update has forgotten the rows it removed and learned the rows it added."""

from __future__ import annotations

import math
from dataclasses import dataclass

LARGEST_ERROR = 0.25  # of a fidelity that is worth stating


@dataclass(frozen=True)
class Forgetting:
    """What an update did for the rows it changed, measured by their losses.

    Losses are summed over the changed rows, in nats; for regression, squared errors are halved and
    divided by the residual variance. For removed rows an increase counts as positive, for added
    rows a decrease.

    Attributes
    ----------
    achieved : float
        How much the update changed the losses. This is computed, not estimated, except for rows
        that are regrown later: for these, it is what booking changed, and an estimate of the rest.
    memory_left : float
        How much more a retrain would change them, as far as the splits that were kept tell.
    memory_left_error : float
        The standard error of `memory_left`.
    most_memory_left : float or None
        The largest memory that is left of a single row. This and the following are None for
        `regrow`: of rows that were removed earlier, only sums are known.
    rows_remembered, rows_still_remembered : int or None
        Rows of which the model remembered at least `memory_floor`, and still does.

    Examples
    --------
    >>> forgetting = Forgetting(2.7, 0.3, 0.1, 0.2, 4, 1)
    >>> round(forgetting.fidelity, 2)
    0.9
    >>> print(forgetting.in_words(30))
    4 of 30 rows were clearly remembered, 1 still is; estimated fidelity 0.90 ± 0.03
    """

    achieved: float
    memory_left: float
    memory_left_error: float
    most_memory_left: float | None = None
    rows_remembered: int | None = None
    rows_still_remembered: int | None = None

    @property
    def fidelity(self) -> float:
        """The achieved fraction of the change that a retrain would cause; nan if there is none."""
        total = self.achieved + self.memory_left
        return self.achieved / total if total > 0 else math.nan

    @property
    def fidelity_error(self) -> float:
        """The standard error of `fidelity`."""
        total = self.achieved + self.memory_left
        return abs(self.achieved) * self.memory_left_error / total**2 if total > 0 else math.inf

    def in_words(self, n_removed: int = 0, n_added: int = 0) -> str:
        """Return a sentence for people, for an update of this many rows."""
        if self.rows_remembered is None or self.rows_still_remembered is None:
            return self._fidelity_in_words()
        n_rows = n_removed + n_added
        what = "remembered" if not n_added else "remembered or to be learned"
        if not n_removed:
            what = "to be learned"
        if not self.rows_remembered:
            return f"none of {n_rows:,} rows was clearly {what}"
        were = "was" if self.rows_remembered == 1 else "were"
        are = "is" if self.rows_still_remembered == 1 else "are"
        now = f"{self.rows_still_remembered:,} still {are}"
        if not self.rows_still_remembered:
            now = "none is any more"
        rows = f"{self.rows_remembered:,} of {n_rows:,} rows {were} clearly {what}, {now}"
        return f"{rows}; {self._fidelity_in_words()}"

    def _fidelity_in_words(self) -> str:
        if not self.fidelity_error <= LARGEST_ERROR:
            return "too little to estimate the fidelity"
        return f"estimated fidelity {self.fidelity:.2f} ± {self.fidelity_error:.2f}"
