"""How much of what a full retrain would change in the loss of some rows an update changes.

For rows removed this is forgetting, for rows added it is learning: 0 is what doing nothing comes
to, 1 is as if the model had been trained without them, or with them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.results import Record
from graftboost.audit.ratio import Ratio, ratio_of_sums


def pooled(record: Record | None) -> Ratio:
    """Ratio of what the update and what the refit changed, over all draws, with its interval.

    Examples
    --------
    >>> losses = {"loss_before": [1.0, 2.0], "loss_after": [1.5, 2.0], "loss_refitted": [2.0, 2.0]}
    >>> pooled(Record("adult", "graftboost", losses)).value
    0.5
    """
    if record is None or "loss_before" not in record.samples:
        return Ratio(None)
    before, after, refitted = (
        np.array(record.samples[f"loss_{when}"]) for when in ("before", "after", "refitted")
    )
    return ratio_of_sums(after - before, refitted - before)
