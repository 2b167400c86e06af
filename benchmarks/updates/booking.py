"""Remove 1% of the rows and leave the regrowing for later: `regrow=False`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import datasets
from benchmarks.goal import Goal, fold
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.fractions import SPEEDS
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import (
    Retrains,
    copy_of,
    new_model,
    quietness,
    rows_of,
    timed,
    times_faster,
)

DATA = tuple(SPEEDS)
SHARE = 0.01
LIMIT = 20.0


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Book the removal of each draw in a copy of the model."""
    data = datasets.load(name)
    n_rows = len(data.y_train)
    model = new_model(plan).fit(data.X_train, data.y_train)
    retrains = Retrains(name, plan)
    record = Record(name, OURS, case={"share": SHARE, "rows": rows_of(SHARE, n_rows)})
    rng = np.random.default_rng(0)
    for _ in range(plan.repeats):
        drawn = rng.choice(n_rows - 1, rows_of(SHARE, n_rows), replace=False)
        updated = copy_of(model, n_rows - 1)
        seconds, _ = timed(partial(updated.remove, regrow=False), drawn)
        record.add("booking_seconds", seconds)
        del updated  # frees its memory before the retrain
        kept = np.delete(np.arange(n_rows), drawn)
        retrains.train(data.X_train[kept], data.y_train[kept])
    plan.say(f"{name}  book {SHARE:.0%}  {1e3 * (record.median('booking_seconds') or 0):.1f} ms")
    yield from (record, *retrains.records())


def tables(run: Run) -> str:
    """One row per data set."""
    rows = []
    for record in run.records:
        if record.failure or record.library != OURS:
            continue
        faster = times_faster(run, record, "booking_seconds")
        retrain = run.best(record.data, YARDSTICK, "fit_seconds")
        rows.append(
            [
                record.data,
                f"{record.case['rows']:,}",
                in_seconds(record.median("booking_seconds") or 0.0),
                "-" if retrain is None else in_seconds(retrain),
                "-" if faster is None else f"**{fold(faster)}**",
            ]
        )
    head = ["data set", "rows removed", "booking", "LightGBM's retrain", "speed-up"]
    return (
        f"{SHARE:.0%} of the rows are removed with `regrow=False`: sums and leaf values are exact "
        "and the rows are erased, but splits stay as they are. Medians, and LightGBM's best.\n\n"
        f"{table(head, rows)}\n\n{quietness(run)}"
    )


def goals(run: Run | None) -> list[Goal]:
    """Speed-up over LightGBM's retrain."""
    found = {name: run.find(name, OURS) if run is not None else None for name in DATA}
    values = {
        name: times_faster(run, record, "booking_seconds") if run is not None else None
        for name, record in found.items()
    }
    what = f"removing {SHARE:.0%} of the rows, booking only: speed-up over LightGBM's retrain"
    return [Goal(what, LIMIT, values, fold, least=True)]


PART = Part(
    "booking",
    data=DATA,
    quick_data=("adult",),
    measure=measure,
    tables=tables,
    goals=goals,
    peers=(LIBRARIES[YARDSTICK],),
    repeats=3,
)
