"""Remove 0.1% and 1% of millions of rows, of which a model hardly remembers any.

The rows are drawn at random, so a removed row is one of very many like it, and most updates have
little to do. What an update left undone is therefore measured in two ways: by the estimate of the
update itself for its worst row, and by the losses of the removed rows after a refit. A refit also
changes the losses of all other rows, by chance; that change is the unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import Goal, fold, times
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import four_digits, in_seconds, table
from benchmarks.measure import log_losses
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import (
    Retrains,
    new_model,
    quietness,
    rows_of,
    timed,
    times_faster,
)
from datasets import Dataset
from graftboost.estimators.report import UpdateReport

ROWS = {"flights_3m": 1_500_000, "higgs_shaped_2m": 2_000_000, "higgs_shaped": 5_500_000}
REFITTED = ("flights_3m", "higgs_shaped_2m")  # and compared with the refit
QUICK_ROWS = 10_000
OTHERS = 100_000  # rows that are never removed, to compare the removed rows with

FEW, MANY = 0.001, 0.01
DRAWS, QUICK_DRAWS = {FEW: 5, MANY: 3}, {FEW: 2, MANY: 1}
WANTED = {FEW: 50.0, MANY: 10.0}  # speed-ups
LIMIT_OF_ESTIMATE = 1.0  # times memory_floor
LIMIT_OF_MEMORY = 1 / 3  # of the change of other rows


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Remove rows of a data set of the registry."""
    data = _quick(name) if plan.quick else datasets.load(name)
    # Retrains of the made tables take long; there is one for each size.
    n_retrains = 1 if name in datasets.MADE else math.ceil(plan.repeats / len(DRAWS))
    return measure_table(data, plan, n_retrains, refit=name in REFITTED)


def _quick(name: str) -> Dataset:
    if name in datasets.MADE:
        return datasets.higgs_shaped(QUICK_ROWS, 1, name=name)
    data = datasets.load(name)
    return replace(data, X_train=data.X_train[:QUICK_ROWS], y_train=data.y_train[:QUICK_ROWS])


def measure_table(data: Dataset, plan: Plan, n_retrains: int, *, refit: bool) -> Iterator[Record]:
    """Remove rows draw by draw from one model, with retrains of the yardstick in between.

    A copy of a model of this size would take longer than an update, so no draw gets its own. With
    ``refit``, the model is refitted after the draws of each size.
    """
    n_rows = len(data.y_train)
    order = np.random.default_rng(0).permutation(n_rows)
    others, order = np.split(order, [min(OTHERS, n_rows // 2)])
    model = new_model(plan).fit(data.X_train, data.y_train)
    retrains = Retrains(data.name, plan)
    for share, n_draws in (QUICK_DRAWS if plan.quick else DRAWS).items():
        case = {"share": share, "rows": rows_of(share, n_rows), "held": n_rows}
        record = Record(data.name, OURS, case={**case, "columns": data.X_train.shape[1]})
        spare, *drawn, order = np.split(order, 1 + int(case["rows"]) * np.arange(n_draws + 1))
        model.remove(spare)  # the first update of a model and after a refit is excluded
        before = []
        for draw, ids in enumerate(drawn):
            before.append(_losses(model, data, ids))
            seconds, report = timed(model.remove, ids)
            record.add("update_seconds", seconds)
            _add_estimate(record, report, model.memory_floor)
            if draw < n_retrains:
                held = np.isin(np.arange(n_rows), model.row_ids_)
                retrains.train(data.X_train[held], data.y_train[held])
        if refit:
            _compare_with_refit(
                record, model, data, np.concatenate(drawn), np.concatenate(before), others
            )
        _say(record, plan)
        yield record
    yield from retrains.records()


def _losses(model: Any, data: Dataset, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    return log_losses(model.predict_proba(data.X_train[ids]), data.y_train[ids])


def _add_estimate(record: Record, report: UpdateReport, floor: float) -> None:
    """Add the memory of the worst row that an update reports, relative to the floor."""
    refitted = report.strategy == "refit"
    record.add("refits", refitted)
    if refitted:
        record.add("most_memory_left", 0.0)
    elif report.forgetting is not None and report.forgetting.most_memory_left is not None and floor:
        record.add("most_memory_left", report.forgetting.most_memory_left / floor)


def _compare_with_refit(
    record: Record,
    model: Any,
    data: Dataset,
    removed: NDArray[np.int64],
    before: NDArray[np.float64],
    others: NDArray[np.int64],
) -> None:
    """Refit the model, and add what that changes for removed rows and for others."""
    after, of_others = (_losses(model, data, ids) for ids in (removed, others))
    record.add("refit_seconds", timed(model.refit)[0])
    refitted = _losses(model, data, removed)
    left = refitted - after
    record.add("memory_before", float(np.mean(refitted - before)))
    record.add("memory_left", float(np.mean(left)))
    record.add("memory_left_error", float(np.std(left) / np.sqrt(len(left))))
    record.add("change", float(np.mean(np.abs(left))))
    record.add("change_of_others", float(np.mean(np.abs(_losses(model, data, others) - of_others))))


def _say(record: Record, plan: Plan) -> None:
    words = [f"{record.data}  remove {_size(record)}"]
    words.append(f"{1e3 * (record.median('update_seconds') or 0):.1f} ms")
    if (worst := _most(record)) is not None:
        words.append(f"most memory left {worst:.2f} of the floor")
    if (ratio := _memory(record)) is not None:
        words.append(f"mean memory left {ratio:.2f} of the change of others")
    plan.say("  ".join(words))


def _size(record: Record) -> str:
    return f"{100 * float(record.case['share']):g}% ({record.case['rows']:,})"


def _most(record: Record) -> float | None:
    """Estimated memory of the worst row of all draws, relative to the floor."""
    values = record.samples.get("most_memory_left", [])
    complete = len(values) == len(record.samples.get("update_seconds", ()))
    return max(values) if values and complete else None


def _memory(record: Record) -> float | None:
    """Mean memory left, by its size, relative to the change of other rows."""
    left, unit = record.best("memory_left"), record.best("change_of_others")
    return abs(left) / unit if left is not None and unit else None


CAPTION = (
    "Rows are drawn at random and removed from one model, draw by draw; seconds are medians over "
    "the draws, and LightGBM's are its best, on the remaining rows. The estimated memory is that "
    "of the worst row that any of the updates reports, relative to `memory_floor`. The model is "
    "then refitted. The memory of the removed rows is the mean of (loss after the refit - loss "
    "before the refit), with its standard error; before the removal, it is the mean of (loss after "
    "the refit - loss before the removal). For comparison, a refit changes the loss of each row "
    "that is still held, by chance: the mean absolute change is that of up to "
    f"{OTHERS:,} such rows, and in brackets that of the removed rows. In the last column, the "
    "figure in brackets is that of the untouched model."
)


def tables(run: Run) -> str:
    """One row per data set and size."""
    rows = []
    for record in run.records:
        if record.failure or record.library != OURS:
            continue
        faster, worst = times_faster(run, record, "update_seconds"), _most(record)
        retrain = run.best(record.data, YARDSTICK, "fit_seconds")
        rows.append(
            [
                f"{record.data}, {record.case['held']:,} x {record.case['columns']}",
                _size(record),
                in_seconds(record.median("update_seconds") or 0.0),
                "-" if retrain is None else in_seconds(retrain),
                "-" if faster is None else f"**{fold(faster)}**",
                f"{sum(record.samples['refits']):.0f} of {len(record.samples['refits'])}",
                "-" if worst is None else times(worst),
                *_memory_cells(record),
            ]
        )
    head = [
        "table",
        "rows removed",
        "update",
        "LightGBM's retrain",
        "speed-up",
        "draws that were refits",
        "most memory left, estimated",
        "memory before",
        "memory left",
        "mean absolute change by a refit",
        "memory left relative to it",
    ]
    return f"{CAPTION}\n\n{table(head, rows)}\n\n{quietness(run)}"


def _memory_cells(record: Record) -> list[str]:
    ratio = _memory(record)
    if ratio is None:
        return ["-"] * 4
    before, left, error, change, of_others = (
        record.best(what) or 0.0
        for what in (
            "memory_before",
            "memory_left",
            "memory_left_error",
            "change",
            "change_of_others",
        )
    )
    return [
        four_digits(before),
        f"{four_digits(left)} ± {error:.2g}",
        f"{four_digits(of_others)} ({four_digits(change)})",
        f"**{times(ratio)}** ({times(abs(before) / of_others)})",
    ]


def goals(run: Run | None) -> list[Goal]:
    """Speed-ups of each size; of the memory, the worst of both sizes counts."""
    records = {name: _records(run, name) for name in ROWS}
    result = [
        Goal(
            f"large tables, removing {100 * share:g}%: speed-up over LightGBM's retrain",
            limit,
            {name: _faster(run, found.get(share)) for name, found in records.items()},
            fold,
            least=True,
        )
        for share, limit in WANTED.items()
    ]
    result.append(
        Goal(
            "large tables: most memory left of a removed row, estimated, relative to memory_floor",
            LIMIT_OF_ESTIMATE,
            {name: _worst([_most(r) for r in found.values()]) for name, found in records.items()},
            times,
        )
    )
    result.append(
        Goal(
            "large tables: mean memory left relative to the change of other rows by a refit",
            LIMIT_OF_MEMORY,
            {name: _worst([_memory(r) for r in records[name].values()]) for name in REFITTED},
            times,
        )
    )
    return result


def _records(run: Run | None, name: str) -> dict[float, Record]:
    """Records of a data set by share; quick runs have too few rows to count."""
    return {
        float(record.case["share"]): record
        for record in (run.records if run is not None else ())
        if record.data == name and record.case.get("held") == ROWS[name]
    }


def _faster(run: Run | None, record: Record | None) -> float | None:
    return times_faster(run, record, "update_seconds") if run is not None else None


def _worst(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(DRAWS) else None


PART = Part(
    "large",
    data=tuple(ROWS),
    quick_data=("higgs_shaped_2m",),
    measure=measure,
    tables=tables,
    goals=goals,
    peers=(LIBRARIES[YARDSTICK],),
    repeats=3,
)
