"""graftboost with the paper's bins and candidates, as the paper's experiments train it."""

from __future__ import annotations

from typing import Any

from benchmarks.libraries import GraftBoost
from benchmarks.settings import Settings
from datasets import Task


class PaperGraftBoost(GraftBoost):
    """graftboost with B = 1024 bins, of whose boundaries alpha = 0.1 are candidates.

    The default of graftboost has fewer bins and more candidates.
    """

    def model(self, task: Task, settings: Settings) -> Any:
        return super().model(task, settings).set_params(max_bins=1024, split_sample=0.1)


PAPER_LIBRARY = PaperGraftBoost()
