"""Hundreds of updates: neither the loss nor the size of the state may drift."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

import datasets
from benchmarks.goal import Goal, percent
from benchmarks.libraries import OURS
from benchmarks.markdown import four_digits, table
from benchmarks.measure import log_loss
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import new_model, rows_of, timed
from datasets import Dataset

DATA = "adult"
UPDATES, QUICK_UPDATES = 200, 10
SHARE = 0.001  # fraction of the initial rows that each update changes
HELD_BACK = 0.2  # fraction of the rows that is not used at the start
WALKS, QUICK_WALKS = 3, 1
LIMIT = 0.01


def measure(name: str, plan: Plan) -> list[Record]:
    """Add and remove rows at random, then fit to the rows held at the end."""
    data = datasets.load(name)
    record = Record(name, OURS)
    record.case["updates"] = n_updates = QUICK_UPDATES if plan.quick else UPDATES
    for seed in range(QUICK_WALKS if plan.quick else WALKS):
        _walk(data, n_updates, np.random.default_rng(seed), plan, record)
        updated, fitted = (record.samples[f"loss_{of}"][-1] for of in ("updated", "fitted"))
        plan.say(f"{name}  {n_updates} updates  loss {updated:.4f}  of a fit {fitted:.4f}")
    return [record]


def _walk(
    data: Dataset, n_updates: int, rng: np.random.Generator, plan: Plan, record: Record
) -> None:
    n_rows = len(data.y_train)
    held = np.ones(n_rows, dtype=np.bool_)
    held[rng.choice(n_rows, round(HELD_BACK * n_rows), replace=False)] = False
    size = rows_of(SHARE, int(held.sum()))
    model = _fit(data, held, plan)
    record.add("loss_untouched", _loss(model, data))
    record.add("bytes_per_row_before", len(pickle.dumps(model)) / model.n_rows_)
    total, refits = 0.0, 0
    for adding in rng.permutation(np.arange(n_updates) % 2 == 0):
        drawn = rng.choice(np.flatnonzero(held != adding), size, replace=False)
        held[drawn] = adding
        if adding:
            X, y = data.X_train[drawn], data.y_train[drawn]
            seconds, report = timed(lambda X, y, ids: model.add(X, y, row_ids=ids), X, y, drawn)
        else:
            seconds, report = timed(model.remove, drawn)
        total += seconds
        refits += report.strategy == "refit"
    record.add("update_seconds", total)
    record.add("refits", refits)
    record.add("loss_updated", _loss(model, data))
    record.add("bytes_per_row_after", len(pickle.dumps(model)) / model.n_rows_)
    seconds, fitted = timed(_fit, data, held, plan)
    record.add("fit_seconds", seconds)
    record.add("loss_fitted", _loss(fitted, data))


def _fit(data: Dataset, held: np.ndarray[Any, np.dtype[np.bool_]], plan: Plan) -> Any:
    rows = np.flatnonzero(held)
    return new_model(plan).fit(data.X_train[rows], data.y_train[rows], row_ids=rows)


def _loss(model: Any, data: Dataset) -> float:
    return log_loss(model.predict_proba(data.X_test), data.y_test)


def tables(run: Run) -> str:
    """One row per random walk, which shows the variation."""
    rows = []
    for record in run.records:
        if record.failure:
            continue
        samples = record.samples
        for walk in range(len(samples["loss_updated"])):
            before, updated, fitted = (
                samples[f"loss_{of}"][walk] for of in ("untouched", "updated", "fitted")
            )
            first, last = (samples[f"bytes_per_row_{when}"][walk] for when in ("before", "after"))
            rows.append(
                [
                    f"{record.data}, walk {walk + 1}",
                    f"**{percent(updated / fitted - 1)}** ({four_digits(updated)})",
                    four_digits(fitted),
                    f"{percent(before / fitted - 1)} ({four_digits(before)})",
                    f"**{percent(last / first - 1)}** ({last:.0f})",
                    f"{first:.0f}",
                    f"{samples['refits'][walk]:.0f}",
                ]
            )
    updates = next((f"{r.case['updates']}" for r in run.records if not r.failure), "The")
    head = [
        "data set",
        "test log loss, updated",
        "of a fit to the same rows",
        "of the untouched model",
        "bytes per row, after",
        "before",
        "refits",
    ]
    return (
        f"{updates} updates with 0.1% of the rows, half of them additions and half removals, in "
        "random order; then a fit to the rows held at the end. Bytes are those of the pickled "
        "model.\n\n" + table(head, rows)
    )


def goals(run: Run | None) -> list[Goal]:
    """Means over the walks; a smaller loss or state is acceptable."""
    loss = {DATA: _growth(run, "loss_fitted", "loss_updated")}
    state = {DATA: _growth(run, "bytes_per_row_before", "bytes_per_row_after")}
    return [
        Goal(f"{UPDATES} updates of 0.1%: log loss relative to a fit", LIMIT, loss, percent),
        Goal(f"{UPDATES} updates of 0.1%: growth of the state per row", LIMIT, state, percent),
    ]


def _growth(run: Run | None, start: str, end: str) -> float | None:
    record = run.find(DATA, OURS, updates=UPDATES) if run is not None else None
    if record is None or not record.samples:
        return None
    return sum(record.samples[end]) / sum(record.samples[start]) - 1


PART = Part("drift", (DATA,), (DATA,), measure, tables, goals)
