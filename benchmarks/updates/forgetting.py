"""The change in the loss of some rows by an update, relative to the change by a refit.

For removed rows this is forgetting, for added rows learning. It is 0 for the untouched model and 1
for a refit.
"""

from __future__ import annotations

import numpy as np

from benchmarks.results import Record
from graftboost.audit.ratio import Ratio, ratio_of_sums


def pooled(record: Record | None) -> Ratio:
    """Change by the update relative to the change by the refit, over all draws, with interval.

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
