"""Refresh and steps of a window, compared with a prediction and a refit of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import copy_of, new_model, rows_of, timed

DATA = ("adult", "credit_info", "pendigits", "letter", "covtype")
LIMIT, STEP_LIMIT = 2.0, 3.0
STEP = 0.01  # of the rows are replaced


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Refresh a model after a removal, then remove another row, then refit; and step."""
    data = datasets.load(name)
    model = new_model(plan).fit(data.X_train, data.y_train)
    record = Record(name, OURS, case={"rows": len(data.y_train)})
    for _ in range(plan.repeats):
        updated = copy_of(model, len(data.y_train) - 1)
        record.add("predict_seconds", timed(updated.predict_proba, data.X_train)[0])
        record.add("refresh_seconds", timed(updated.refresh)[0])
        record.add("next_seconds", timed(updated.remove, 0)[0])
        record.add("refit_seconds", timed(updated.refit)[0])
    n_rows = len(data.y_train)
    stepping = copy_of(model, n_rows - 1, fidelity=0.0).refresh()
    n_steps = min(plan.repeats, (n_rows - 1) // rows_of(STEP, n_rows))
    for start in rows_of(STEP, n_rows) * np.arange(n_steps):
        replaced = np.arange(start, start + rows_of(STEP, n_rows))
        record.add("step_seconds", timed(_step, stepping, data, replaced)[0])
    plan.say(
        f"{name}  refresh {record.best('refresh_seconds') or 0:.3f} s"
        f"  predict {record.best('predict_seconds') or 0:.3f} s"
        f"  step {record.best('step_seconds') or 0:.3f} s"
    )
    yield record


def _step(model: Any, data: datasets.Dataset, replaced: NDArray[np.int64]) -> None:
    # The rows return under new ids.
    model.update(
        data.X_train[replaced],
        data.y_train[replaced],
        row_ids=replaced + len(data.y_train),
        remove=replaced,
    )
    model.refresh()


def tables(run: Run) -> str:
    """One row per data set."""
    rows = []
    for record in run.records:
        if record.failure:
            continue
        predict, refresh, after, refit, step = (
            record.best(f"{what}_seconds") or 0.0
            for what in ("predict", "refresh", "next", "refit", "step")
        )
        rows.append(
            [
                record.data,
                in_seconds(refresh),
                f"{refresh / predict:.1f}x ({in_seconds(predict)})",
                in_seconds(after),
                f"{after / refit:.2f} ({in_seconds(refit)})",
                in_seconds(step) if step else "-",
                f"{step / predict:.1f}x" if step else "-",
            ]
        )
    head = [
        "data set",
        "`refresh()`",
        "relative to `predict_proba` of the rows held",
        "next removal",
        "relative to `refit()`",
        "step of a window",
        "relative to `predict_proba`",
    ]
    return (
        "The first update after a refresh recomputes all histograms, unless it keeps the "
        f"structure. A step of a window replaces {STEP:.0%} of the rows with `fidelity=0` and "
        f"refreshes the model. Best of {run.repeats}.\n\n" + table(head, rows)
    )


def goals(run: Run | None) -> list[Goal]:
    """Time relative to a prediction, which finds the same leaves."""
    return [
        Goal(
            f"{what} relative to a prediction for the rows held",
            limit,
            {name: _ratio(run, name, measure) for name in DATA},
            times,
        )
        for what, limit, measure in (
            ("refresh time", LIMIT, "refresh_seconds"),
            (f"replacing {STEP:.0%} of the rows and refreshing", STEP_LIMIT, "step_seconds"),
        )
    ]


def _ratio(run: Run | None, name: str, measure: str) -> float | None:
    record = None if run is None else run.find(name, OURS)
    if record is None:
        return None
    seconds, predict = record.best(measure), record.best("predict_seconds")
    return seconds / predict if seconds and predict else None


PART = Part("refresh", DATA, ("adult",), measure, tables, goals)
