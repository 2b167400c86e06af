"""Fits and updates with half of the rows per tree, compared with all rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import copy_of, new_model, rows_of, timed

DATA = ("adult", "electricity", "diamonds", "credit_info", "covtype", "letter")
SHARES = (1.0, 0.5)
REMOVED = 0.001  # of the rows
LIMIT = 0.75


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Fit and remove rows with each share of the rows per tree, in turns."""
    data = datasets.load(name)
    n_rows = len(data.y_train)
    records = [Record(name, OURS, case={"subsample": share}) for share in SHARES]
    rng = np.random.default_rng(0)
    for _ in range(plan.repeats):
        removed = rng.choice(n_rows - 1, rows_of(REMOVED, n_rows), replace=False)
        for record in records:
            model = new_model(plan, data.task).set_params(subsample=record.case["subsample"])
            gc.collect()
            record.add("fit_seconds", timed(model.fit, data.X_train, data.y_train)[0])
            record.add("remove_seconds", timed(copy_of(model, n_rows - 1).remove, removed)[0])
    for record in records:
        plan.say(
            f"{name}  subsample {record.case['subsample']}"
            f"  fit {record.best('fit_seconds') or 0:.3f} s"
            f"  remove {record.best('remove_seconds') or 0:.3f} s"
        )
    yield from records


def tables(run: Run) -> str:
    """One row per data set."""
    rows = []
    for name in dict.fromkeys(record.data for record in run.records if not record.failure):
        row = [name]
        for what in ("fit_seconds", "remove_seconds"):
            seconds, ratio = _best(run, name, what), _ratio(run, name, what)
            row += [in_seconds(each) if each is not None else "-" for each in seconds]
            row.append("-" if ratio is None else f"{ratio:.2f}")
        rows.append(row)
    every, half = (f"{share:g}" for share in SHARES)
    head = ["data set"]
    for what in ("fit", f"removing {REMOVED:.1%}"):
        head += [f"{what}, `subsample={every}`", half, "ratio"]
    return f"Best of {run.repeats}.\n\n" + table(head, rows)


def goals(run: Run | None) -> list[Goal]:
    """Fit time relative to that with all rows."""
    return [
        Goal(
            f"fit time with subsample={SHARES[1]} relative to that without",
            LIMIT,
            {name: _ratio(run, name, "fit_seconds") for name in DATA},
            times,
        )
    ]


def _best(run: Run, name: str, what: str) -> list[float | None]:
    records = (run.find(name, OURS, subsample=share) for share in SHARES)
    return [None if record is None else record.best(what) for record in records]


def _ratio(run: Run | None, name: str, what: str) -> float | None:
    if run is None:
        return None
    every, half = _best(run, name, what)
    return half / every if half and every else None


PART = Part("subsample", DATA, ("adult",), measure, tables, goals)
