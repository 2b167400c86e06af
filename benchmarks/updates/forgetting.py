"""The change in the loss of some rows by an update, relative to the change by a refit.

For removed rows this is forgetting, for added rows learning. It is 0 for the untouched model and 1
for a refit. The estimated fidelity of an update estimates it without a refit.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.results import Record
from graftboost.audit.ratio import Ratio, ratio_of_sums
from graftboost.estimators.report import UpdateReport


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


def add_estimate(record: Record, report: UpdateReport, n_rows: int) -> None:
    """Add what a draw achieved for its rows, and the memory of them that is left.

    A refit achieves what it changed in their losses, which the record already has as means over
    ``n_rows`` rows, and leaves nothing. Nothing is added if the update estimated nothing.
    """
    if report.strategy == "refit":
        after, before = (record.samples[f"loss_{when}"][-1] for when in ("after", "before"))
        increase = n_rows * (after - before)
        record.add("achieved", increase if len(report.removed_ids) else -increase)
        record.add("memory_left", 0.0)
    elif report.forgetting is not None:
        record.add("achieved", report.forgetting.achieved)
        record.add("memory_left", report.forgetting.memory_left)


def estimated(record: Record | None) -> float | None:
    """Estimated fidelity over all draws, None unless it was estimated for each draw.

    Examples
    --------
    >>> estimates = {"refits": [0, 1], "achieved": [1.0, 2.0], "memory_left": [1.0, 0.0]}
    >>> estimated(Record("adult", "graftboost", estimates))
    0.75
    """
    samples = {} if record is None else record.samples
    achieved, left = (samples.get(what, []) for what in ("achieved", "memory_left"))
    total = math.fsum([*achieved, *left])
    if len(achieved) < len(samples.get("refits", ())) or total <= 0:
        return None
    return math.fsum(achieved) / total


def in_digits(estimate: float | None) -> str:
    """An estimated fidelity in a table.

    Examples
    --------
    >>> in_digits(0.75), in_digits(None)
    ('0.75', '-')
    """
    return "-" if estimate is None else f"{estimate:.2f}"
