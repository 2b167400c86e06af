"""The goals of the project, and whether a set of runs reaches them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from benchmarks import (
    accuracy,
    columns,
    distributed,
    import_time,
    many_rows,
    memory,
    store,
    threads,
)
from benchmarks.goal import Goal, percent, times
from benchmarks.libraries import OURS, YARDSTICK
from benchmarks.markdown import table
from benchmarks.results import Run
from benchmarks.sparse import parts as sparse
from benchmarks.updates import parts as updates
from benchmarks.updates.part import Part
from datasets import SOURCES, names_of

LARGEST = "covtype"  # many one-hot columns and seven classes: a higher limit
PREDICTED = ("covtype", "flights_3m")


def goals(runs: Mapping[str, Run]) -> list[Goal]:
    """All goals, with the measured values."""
    two, one = runs.get("fit-threads-2"), runs.get("fit-threads-1")
    imports = runs.get("import")
    classification = names_of("classification")
    usual = [name for name in SOURCES if name != LARGEST]
    return [
        Goal("fit time relative to LightGBM's, two threads", 0.7, _ratios(two, usual), times),
        Goal(
            f"fit time relative to LightGBM's, two threads, {LARGEST}",
            0.8,
            _ratios(two, [LARGEST]),
            times,
        ),
        Goal(
            "fit time relative to LightGBM's, one thread", 1.2, _ratios(one, classification), times
        ),
        *columns.goals(runs.get(columns.KIND)),
        *many_rows.goals(runs.get(many_rows.KIND)),
        *threads.goals(runs.get(threads.KIND)),
        *accuracy.goals(runs.get(accuracy.KIND)),
        Goal(
            "predict time relative to the faster of LightGBM and XGBoost",
            1.0,
            {name: _to_faster(two, name) for name in PREDICTED},
            times,
        ),
        *memory.goals(runs.get("memory")),
        Goal(
            f"import time of {import_time.OURS} relative to {import_time.YARDSTICK}",
            1.3,
            {"import": _import_ratio(imports)},
            times,
        ),
        *_goals_of_parts(updates.PARTS, runs),
        *store.goals(runs.get(store.KIND)),
        *distributed.goals(runs.get(distributed.KIND)),
        *_goals_of_parts(sparse.PARTS, runs),
    ]


def _goals_of_parts(parts: Mapping[str, Part], runs: Mapping[str, Run]) -> list[Goal]:
    return [goal for part in parts.values() for goal in part.goals(runs.get(part.kind))]


def _ratios(
    run: Run | None, names: Iterable[str], measure: str = "fit_seconds"
) -> dict[str, float | None]:
    return {
        name: run.ratio(name, OURS, measure, YARDSTICK) if run is not None else None
        for name in names
    }


def _to_faster(run: Run | None, name: str) -> float | None:
    if run is None:
        return None
    ratios = [run.ratio(name, OURS, "predict_seconds", peer) for peer in (YARDSTICK, "xgboost")]
    known = [ratio for ratio in ratios if ratio is not None]
    # The faster of the two is only known if both were measured.
    return max(known) if len(known) == len(ratios) else None


def _import_ratio(run: Run | None) -> float | None:
    if run is None:
        return None
    return run.ratio("import", import_time.OURS, "import_seconds", import_time.YARDSTICK)


def goals_table(wanted: Iterable[Goal]) -> str:
    """Goals as a Markdown table."""
    rows = [[goal.what, goal.wanted(), goal.verdict()] for goal in wanted]
    return table(["goal", "wanted", "reached"], rows)


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean, in which the ratios 2 and 1/2 cancel.

    Examples
    --------
    >>> geometric_mean([2.0, 0.5])
    1.0
    """
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs))


def summary(run: Run) -> str:
    """One line about a fit run: time and losses relative to LightGBM."""
    names = run.data_names()
    times = [value for value in _ratios(run, names).values() if value is not None]
    if not times:
        return "graftboost and LightGBM were not both measured."
    mean = f"{geometric_mean(times):.2f} (geometric mean of {len(times)} data sets)"
    parts = [f"fit time {mean}"]
    for what, measure in (("log loss", "log_loss"), ("squared error", "squared_error")):
        found = _ratios(run, names, measure).items()
        above = {name: ratio - 1 for name, ratio in found if ratio is not None}
        if above:
            where = max(above, key=above.__getitem__)
            average = math.fsum(above.values()) / len(above)
            parts.append(
                f"{what} {percent(average)} on average, {percent(above[where])} at worst ({where})"
            )
    return "graftboost relative to LightGBM: " + "; ".join(parts) + "."
