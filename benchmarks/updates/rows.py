"""Remove one of few and one of many rows: the cost hardly depends on the rows held."""

from __future__ import annotations

import gc

import numpy as np

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import new_model, timed

DATA = "flights_3m"
FEW_AND_MANY = (50_000, 3_000_000)
QUICK_FEW_AND_MANY = (5_000, 50_000)
REMOVALS, QUICK_REMOVALS = 30, 5
LIMIT = 1.5


def measure(name: str, plan: Plan) -> list[Record]:
    """Remove rows one by one, from the small model and from the large one in turns."""
    X, y = datasets.load_in_order(name)
    rng = np.random.default_rng(0)
    n = QUICK_REMOVALS if plan.quick else REMOVALS
    models, records, going = [], [], []
    for n_rows in QUICK_FEW_AND_MANY if plan.quick else FEW_AND_MANY:
        drawn = rng.permutation(len(y))[:n_rows]
        models.append(new_model(plan).fit(X[drawn], y[drawn]))
        records.append(Record(name, OURS, case={"rows": len(drawn)}))
        going.append(rng.choice(len(drawn), n + 1, replace=False))
        models[-1].remove(going[-1][n])  # the first is excluded
    gc.collect()
    for i in range(n):
        for model, record, ids in zip(models, records, going, strict=True):
            seconds, _ = timed(model.remove, ids[i])
            record.add("remove_seconds", seconds)
    for record in records:
        milliseconds = 1e3 * (record.median("remove_seconds") or 0)
        plan.say(f"{name}  one of {record.case['rows']:,} rows removed  {milliseconds:.2f} ms")
    return records


def tables(run: Run) -> str:
    """Median by number of rows."""
    rows = [
        [r.data, f"{r.case['rows']:,}", in_seconds(r.median("remove_seconds") or 0.0)]
        for r in run.records
        if not r.failure
    ]
    ratio = _ratio(run)
    end = "" if ratio is None else f"\n\nRatio of many rows to few: {times(ratio)}."
    return f"{table(['data set', 'rows held', 'removing one row, median'], rows)}{end}"


def _ratio(run: Run | None) -> float | None:
    medians = [] if run is None else [record.median("remove_seconds") for record in run.records]
    if len(medians) != 2 or not medians[0] or medians[1] is None:
        return None
    return medians[1] / medians[0]


def goals(run: Run | None) -> list[Goal]:
    """Time with many rows relative to few."""
    few, many = FEW_AND_MANY
    what = f"removing one of {many:,} rows relative to one of {few:,}"
    quick = run is not None and [r.case.get("rows") for r in run.records] != [few, many]
    return [Goal(what, LIMIT, {DATA: None if quick else _ratio(run)}, times)]


PART = Part("rows", (DATA,), (DATA,), measure, tables, goals)
