"""Times of fits, predictions and updates in both builds, measured in turns.

The time of an update depends on its rows, so both builds remove and add the same rows of the same
models: every draw of rows is a pair of times, and is measured again in every repeat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.builds.build import Builds, RequestError, Workers, workers_of
from benchmarks.markdown import in_seconds, table
from benchmarks.measure import PREDICTIONS
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import rows_of

DATA = ("adult", "credit_info", "letter", "covtype", "news20_ngrams")
QUICK_DATA = ("adult",)
SHARE = 0.001
ROW_DRAWS, QUICK_ROW_DRAWS = 20, 5
SHARE_DRAWS, QUICK_SHARE_DRAWS = 6, 2

FIT, PREDICT = "fit", "predict"
ROW_OUT, ROW_IN, SHARE_OUT = "one row out", "one row in", f"{SHARE:.1%} out"
OPERATIONS = (FIT, PREDICT, ROW_OUT, ROW_IN, SHARE_OUT)


def compare_speed(builds: Builds, names: Sequence[str], plan: Plan) -> str:
    """Least and median times of all operations on these data sets, and their ratios."""
    rows, failures = [], []
    with workers_of(builds) as workers:
        for name in names:
            times = Times(workers)
            try:
                n_rows = measure(name, times, plan)
            except RequestError as error:
                plan.say(f"{name}  failed: {error}")
                failures.append(f"{name} failed: {error}")
                continue
            rows += [[name, f"{n_rows:,}", *times.cells(operation)] for operation in OPERATIONS]
    head = ["data set", "rows", "operation"]
    for statistic in ("least", "median"):
        head += [f"old, {statistic}", f"new, {statistic}", "new / old"]
    text = (
        f"Seconds with {plan.settings}; repeats in turns: {plan.repeats}, of predictions "
        f"{PREDICTIONS * plan.repeats}. For updates, the mean over draws of rows, the same in both "
        "builds, of the least or median of the repeats."
    )
    return "\n\n".join([text, table(head, rows), *failures])


class Times:
    """Seconds of each operation on one data set, by draw and by build."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.seconds: dict[tuple[str, int], tuple[list[float], list[float]]] = defaultdict(
            lambda: ([], [])
        )

    def take(self, operation: str, draw: int, request: str, **arguments: Any) -> None:
        """Time a request in both builds.

        The builds alternate in being first, over the draws and over the repeats of a draw.
        """
        pair = self.seconds[operation, draw]
        first = (draw + len(pair[0])) % 2
        for build in (first, 1 - first):
            pair[build].append(self.workers[build].ask(request, **arguments))

    def both(self, statistic: Callable[[list[float]], float], operation: str) -> list[float]:
        """Mean over the draws of a statistic of the repeats, in the old and in the new build."""
        draws = [pair for (of, _), pair in self.seconds.items() if of == operation]
        return [fmean(statistic(pair[build]) for pair in draws) for build in (0, 1)]

    def cells(self, operation: str) -> list[str]:
        """Cells of a table: the operation, its least and median times, and ratios."""
        cells = [operation]
        for statistic in (min, median):
            old, new = self.both(statistic, operation)
            cells += [in_seconds(old), in_seconds(new), f"{new / old:.2f}"]
        return cells


def measure(name: str, times: Times, plan: Plan) -> int:
    """Measure one data set; returns the number of training rows."""
    for worker in times.workers:
        n_rows, n_others = worker.ask("load", name=name, settings=asdict(plan.settings))
    rng = np.random.default_rng(0)
    n_draws = min(QUICK_ROW_DRAWS if plan.quick else ROW_DRAWS, n_rows - 1, n_others - 1)
    # The last rows are those of the first updates of a copy, which are not measured.
    going = rng.choice(n_rows - 1, n_draws, replace=False).tolist()
    coming = rng.choice(n_others - 1, n_draws, replace=False).tolist()
    shares = [
        rng.choice(n_rows - 1, rows_of(SHARE, n_rows), replace=False).tolist()
        for _ in range(QUICK_SHARE_DRAWS if plan.quick else SHARE_DRAWS)
    ]
    for repeat in range(1, plan.repeats + 1):
        times.take(FIT, 0, "fit")
        for _ in range(PREDICTIONS):
            times.take(PREDICT, 0, "predict")
        _copy(times.workers)
        for draw, row in enumerate(going):
            times.take(ROW_OUT, draw, "remove", rows=[row])
        for draw, row in enumerate(coming):
            times.take(ROW_IN, draw, "add", rows=[row])
        for draw, rows in enumerate(shares):
            _copy(times.workers)
            times.take(SHARE_OUT, draw, "remove", rows=rows)
        ratios = [f"{operation} {times.cells(operation)[3]}" for operation in OPERATIONS]
        plan.say(f"{name}  {repeat}/{plan.repeats}  new / old, least: {', '.join(ratios)}")
    return int(n_rows)


def _copy(workers: Workers) -> None:
    """Let both builds copy the fitted model, so that the updates that follow start from it."""
    for worker in workers:
        worker.ask("copy")
