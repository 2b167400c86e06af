"""Refresh, compared with a prediction and a refit of the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import copy_of, new_model, timed

DATA = ("adult", "credit_info", "pendigits", "letter", "covtype")
LIMIT = 2.0


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Refresh a model after a removal, then remove another row, then refit."""
    data = datasets.load(name)
    model = new_model(plan).fit(data.X_train, data.y_train)
    record = Record(name, OURS, case={"rows": len(data.y_train)})
    for _ in range(plan.repeats):
        updated = copy_of(model, len(data.y_train) - 1)
        record.add("predict_seconds", timed(updated.predict_proba, data.X_train)[0])
        record.add("refresh_seconds", timed(updated.refresh)[0])
        record.add("next_seconds", timed(updated.remove, 0)[0])
        record.add("refit_seconds", timed(updated.refit)[0])
    plan.say(
        f"{name}  refresh {record.best('refresh_seconds') or 0:.3f} s"
        f"  predict {record.best('predict_seconds') or 0:.3f} s"
    )
    yield record


def tables(run: Run) -> str:
    """One row per data set."""
    rows = []
    for record in run.records:
        if record.failure:
            continue
        predict, refresh, after, refit = (
            record.best(f"{what}_seconds") or 0.0
            for what in ("predict", "refresh", "next", "refit")
        )
        rows.append(
            [
                record.data,
                in_seconds(refresh),
                f"{refresh / predict:.1f}x ({in_seconds(predict)})",
                in_seconds(after),
                f"{after / refit:.2f} ({in_seconds(refit)})",
            ]
        )
    head = [
        "data set",
        "`refresh()`",
        "relative to `predict_proba` of the rows held",
        "next removal",
        "relative to `refit()`",
    ]
    return (
        "The first update after a refresh recomputes all histograms. Best of "
        f"{run.repeats}.\n\n" + table(head, rows)
    )


def goals(run: Run | None) -> list[Goal]:
    """Time relative to a prediction, which finds the same leaves."""
    return [
        Goal(
            "refresh time relative to a prediction for the rows held",
            LIMIT,
            {name: _ratio(run.find(name, OURS)) if run is not None else None for name in DATA},
            times,
        )
    ]


def _ratio(record: Record | None) -> float | None:
    if record is None:
        return None
    refresh, predict = record.best("refresh_seconds"), record.best("predict_seconds")
    return refresh / predict if refresh and predict else None


PART = Part("refresh", DATA, ("adult",), measure, tables, goals)
