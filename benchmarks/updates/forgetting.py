"""How much of what a full retrain would change in the loss of some rows an update changes.

For rows removed this is forgetting, for rows added it is learning: 0 is what doing nothing comes
to, 1 is as if the model had been trained without them, or with them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.results import Record

RESAMPLES = 2000


def changes(record: Record) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """What the update and what the refit changed in the mean loss of the rows: one row a draw."""
    before = np.array(record.samples["loss_before"])
    after, refitted = (np.array(record.samples[f"loss_{when}"]) for when in ("after", "refitted"))
    return np.column_stack([after - before, refitted - before])


def pooled(record: Record | None) -> float | None:
    """Ratio of the sums over all draws; that of a single draw may divide by almost nothing.

    Examples
    --------
    >>> losses = {"loss_before": [1.0, 2.0], "loss_after": [1.5, 2.0], "loss_refitted": [2.0, 2.0]}
    >>> pooled(Record("adult", "graftboost", losses))
    0.5
    """
    if record is None or "loss_before" not in record.samples:
        return None
    of_update, of_refit = changes(record).sum(axis=0)
    return float(of_update / of_refit)


def interval(record: Record) -> tuple[float, float]:
    """Bootstrap interval of the pooled ratio over the draws, 95 per cent."""
    both = changes(record)
    drawn = np.random.default_rng(0).integers(len(both), size=(RESAMPLES, len(both)))
    sums = both[drawn].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975])
    return float(low), float(high)
