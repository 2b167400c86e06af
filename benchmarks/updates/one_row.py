"""Remove and add one row: milliseconds, and the speed-up over LightGBM's retrain."""

from __future__ import annotations

import gc

import numpy as np

import datasets
from benchmarks.goal import Goal, fold
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import Retrains, new_model, quietness, timed, times_faster
from datasets import AnyDataset

ROWS, QUICK_ROWS = 30, 5  # of each, removed and added one by one
SMALL = ("adult", "electricity", "higgs_sample", "pendigits", "optdigits", "credit_info")
WANTED = {"letter": 200.0, "covtype": 1000.0, "flights_3m": 5000.0}
WANTED_OF_SMALL = 100.0


def measure(name: str, plan: Plan) -> list[Record]:
    """Remove and add rows of a data set of the registry."""
    return measure_rows(datasets.load(name), QUICK_ROWS if plan.quick else ROWS, plan)


def measure_rows(data: AnyDataset, n: int, plan: Plan) -> list[Record]:
    """Remove a row and add a row, in turns, with a retrain of the yardstick every few rows.

    Removed rows are drawn from the training rows, added rows from the test rows.
    """
    retrains = Retrains(data.name, plan)
    model = new_model(plan).fit(data.X_train, data.y_train)
    trees = len(model.apply(data.X_test[:1])[0])
    record = Record(data.name, OURS, case={"rows": len(data.y_train), "trees": trees})
    rng = np.random.default_rng(0)
    going = rng.choice(len(data.y_train), n + 1, replace=False)
    coming = rng.choice(len(data.y_test), n + 1, replace=False)
    model.remove(going[n])  # the first of each is excluded
    model.add(data.X_test[coming[n:]], data.y_test[coming[n:]])
    for turn in np.array_split(np.arange(n), plan.repeats):
        retrains.train(data.X_train, data.y_train)
        gc.collect()
        for gone, i in zip(going[turn], coming[turn], strict=True):
            X, y = data.X_test[i : i + 1], data.y_test[i : i + 1]
            removal_seconds, removal = timed(model.remove, gone)
            addition_seconds, addition = timed(model.add, X, y)
            record.add("remove_seconds", removal_seconds)
            record.add("add_seconds", addition_seconds)
            record.add("refits", (removal.strategy, addition.strategy).count("refit"))
    plan.say(
        f"{data.name}  one row removed {1e3 * (record.median('remove_seconds') or 0):.2f} ms"
        f"  added {1e3 * (record.median('add_seconds') or 0):.2f} ms"
    )
    return [record, *retrains.records()]


def tables(run: Run) -> str:
    """Medians, and LightGBM's best retrain relative to them."""
    rows = []
    for name in run.data_names():
        record = run.find(name, OURS)
        if record is None or record.failure:
            continue
        retrain = run.best(name, YARDSTICK, "fit_seconds")
        cells = [name, f"{record.case['rows']:,}", f"{record.case['trees']}"]
        cells.append("-" if retrain is None else in_seconds(retrain))
        for way in ("remove_seconds", "add_seconds"):
            faster = times_faster(run, record, way)
            text = in_seconds(record.median(way) or 0.0)
            cells.append(text if faster is None else f"**{fold(faster)}** ({text})")
        rows.append([*cells, f"{sum(record.samples['refits']):.0f}"])
    head = [
        "data set",
        "rows",
        "trees",
        "LightGBM's retrain",
        "removing one row",
        "adding one row",
        "refits",
    ]
    return (
        "Speed-up over LightGBM's retrain (its best time divided by our median), and our median. "
        "Refits: the number of updates for which a refit was cheaper.\n\n"
        f"{table(head, rows)}\n\n{quietness(run)}"
    )


def goals(run: Run | None) -> list[Goal]:
    """The slower of removing and adding counts."""
    what = "removing or adding one row: speed-up over LightGBM's retrain"
    result = [Goal(what, WANTED_OF_SMALL, {n: slower(run, n) for n in SMALL}, fold, least=True)]
    for name, limit in WANTED.items():
        values = {name: slower(run, name)}
        result.append(Goal(f"{what}, {name}", limit, values, fold, least=True))
    return result


def slower(run: Run | None, name: str) -> float | None:
    """Speed-up over a retrain, of the slower of removing and adding."""
    if run is None:
        return None
    record = run.find(name, OURS)
    both = [times_faster(run, record, way) for way in ("remove_seconds", "add_seconds")]
    known = [value for value in both if value is not None]
    return min(known, default=None)


PART = Part(
    "one-row",
    data=(*SMALL, *WANTED),
    quick_data=("adult", "pendigits"),
    measure=measure,
    tables=tables,
    goals=goals,
    peers=(LIBRARIES[YARDSTICK],),
    repeats=3,
)
