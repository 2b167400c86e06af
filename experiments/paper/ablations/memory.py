"""Whether models of a given size fit into the available memory."""

from __future__ import annotations

import numpy as np

from benchmarks.markdown import in_bytes
from benchmarks.settings import Settings
from datasets import Dataset
from experiments.paper.ablations.alpha import candidates


def too_large(data: Dataset, settings: Settings) -> str | None:
    """What is skipped and why, if two models of this size may not fit; None if they do."""
    try:
        import psutil
    except ImportError:
        return None
    n_classes = len(np.unique(data.y_train))
    trees = settings.iterations * (n_classes if n_classes > 2 else 1)
    # Per row and tree a leaf id and a gradient of two bytes. Per node and candidate a histogram
    # entry, of which the engine keeps those that are cheaper to keep than to recompute: five bytes,
    # measured.
    histograms = 5 * (2 * settings.leaves - 1) * candidates(data, 0.1)
    needed = 2 * trees * (3 * len(data.y_train) + histograms)
    free = psutil.virtual_memory().available
    if needed <= free:
        return None
    return (
        f"{data.name} with {settings.iterations} iterations ({in_bytes(needed)} needed, "
        f"{in_bytes(free)} free)"
    )
