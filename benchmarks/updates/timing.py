"""Models to update, timing, and the yardstick that is retrained between updates."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable
from statistics import median
from typing import Any, TypeVar

from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library, warm_up
from benchmarks.results import Record, Run
from benchmarks.updates.part import Plan
from datasets import Table, Target, Task

Result = TypeVar("Result")


def timed(call: Callable[..., Result], *arguments: Any) -> tuple[float, Result]:
    """Seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - start, result


def new_model(plan: Plan, task: Task = "classification") -> Any:
    """Our estimator, not fitted."""
    return LIBRARIES[OURS].model(task, plan.settings)


def copy_of(model: Any, spare: int, **parameters: Any) -> Any:
    """A copy of a fitted model after its first update.

    The first update of a process or a model may build state that later updates use. The copy has
    therefore removed one row, ``spare``, which measured updates must not use.
    """
    result = copy.deepcopy(model).set_params(**parameters)
    result.remove(spare)
    gc.collect()
    return result


def rows_of(size: float, n_rows: int) -> int:
    """Number of rows of a size: a share of the rows, or from 1 on a number of them.

    Examples
    --------
    >>> [rows_of(size, 2_000) for size in (0.0, 0.001, 1, 5)]
    [1, 2, 1, 5]
    """
    return max(1, round(size if size >= 1 else size * n_rows))


class Retrains:
    """The yardstick, or another library, retrained between the updates.

    A slow moment of a shared machine then affects both.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        task: Task = "classification",
        library: Library | None = None,
    ) -> None:
        self.record = Record(name, YARDSTICK if library is None else library.name)
        self._library, self._settings, self._task = library or plan.yardstick, plan.settings, task
        if self._library is not None:
            warm_up(self._library, task, plan.settings)

    def train(self, X: Table, y: Target) -> Any:
        """Train once and record the seconds; returns the model, None without a yardstick."""
        if self._library is None:
            return None
        model = self._library.model(self._task, self._settings)
        gc.collect()
        with self._library.thread_limit(self._settings.threads):
            seconds, _ = timed(model.fit, X, y)
        self.record.add("fit_seconds", seconds)
        return model

    def records(self) -> list[Record]:
        """The record, if there is a yardstick."""
        return [] if self._library is None else [self.record]


def times_faster(run: Run, record: Record | None, measure: str) -> float | None:
    """Speed-up: the yardstick's best retrain divided by the median of an update."""
    if record is None:
        return None
    retrain = run.best(record.data, YARDSTICK, "fit_seconds")
    seconds = record.median(measure)
    return retrain / seconds if retrain and seconds else None


def quietness(run: Run) -> str:
    """Ratio of the median retrain to the best, which is near 1 on an idle machine."""
    spread = {
        record.data: median(seconds) / min(seconds)
        for record in run.records
        if len(seconds := record.samples.get("fit_seconds", [])) > 1 and record.library == YARDSTICK
    }
    if not spread:
        return "LightGBM was trained at most once, so these figures are not reliable."
    worst = max(spread, key=spread.__getitem__)
    return f"Ratio of LightGBM's median retrain to its best: {spread[worst]:.2f} ({worst})."
