"""Remove and add from one row to 1% of the rows: seconds, forgetting and learning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import Goal, fold, times
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_seconds, table
from benchmarks.measure import log_loss
from benchmarks.results import Record, Run
from benchmarks.updates.forgetting import add_estimate, estimated, in_digits, pooled
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
from datasets import AnyDataset

Way = Literal["remove", "add"]
WAYS: tuple[Way, ...] = get_args(Way)

FEW, MANY = SHARES = (0.001, 0.01)  # with goals
SIZES = (1, 5, *SHARES)  # one row, the rows of a customer, and shares of the rows
TWO_CLASSES = ("adult", "electricity", "credit_info", "higgs_sample")
MORE_CLASSES = ("covtype", "letter", "pendigits", "optdigits")
# Refits and copies of models with many trees take long: fewer sizes and draws, only removals.
DRAWS_OF_MORE_CLASSES = {"covtype": 3, "letter": 5, "pendigits": 5, "optdigits": 5}

# Speed-ups that are wanted for 0.1%; for 1%, the same on all.
SPEEDS = {**dict.fromkeys(TWO_CLASSES, 15.0), **dict.fromkeys(MORE_CLASSES, 10.0)}
SPEED_OF_MANY = 4.0


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Draw rows of a data set of the registry."""
    data = datasets.load(name)
    if name in MORE_CLASSES:
        few, many = (min(draws, DRAWS_OF_MORE_CLASSES[name]) for draws in plan.draws)
        return measure_sizes(data, ("remove",), SHARES, replace(plan, draws=(few, many)))
    return measure_sizes(data, WAYS, SIZES, plan)


def measure_sizes(
    data: AnyDataset, ways: Sequence[Way], sizes: Sequence[float], plan: Plan
) -> Iterator[Record]:
    """Draw rows, update a copy of the model, then refit the copy.

    Sizes are shares of the rows, or from 1 on numbers of rows.
    """
    model = new_model(plan).fit(data.X_train, data.y_train)
    retrains = Retrains(data.name, plan)
    few, many = plan.draws
    for way in ways:
        # Between the removals of each size, so that there are at least `repeats` in all.
        n_retrains = math.ceil(plan.repeats / len(sizes)) if way == "remove" else 0
        for size in sizes:
            draws = _Draws(data, model, way, size, plan)
            yield from draws.measure(many if size == MANY else few, n_retrains, retrains)
    yield from retrains.records()


class _Draws:
    """Draws of one size from the rows of one data set, and one record for each fidelity."""

    def __init__(self, data: AnyDataset, model: Any, way: Way, size: float, plan: Plan) -> None:
        self.data, self.model, self.way, self.plan = data, model, way, plan
        self.n_rows = rows_of(size, len(data.y_train))
        self.spare = len(data.y_train) - 1
        self.trees = len(model.apply(data.X_train[:1])[0])
        self.records = {
            fidelity: Record(
                data.name,
                OURS,
                case={
                    "way": way,
                    "share": size,
                    "fidelity": fidelity,
                    "default": fidelity == model.fidelity,
                    "rows": self.n_rows,
                },
            )
            for fidelity in plan.fidelities or (model.fidelity,)
        }

    def measure(self, n_draws: int, n_retrains: int, retrains: Retrains) -> list[Record]:
        rng = np.random.default_rng(0)
        # The spare row is never removed; added rows are test rows.
        n_from = self.spare if self.way == "remove" else len(self.data.y_test)
        for draw in range(n_draws):
            drawn = rng.choice(n_from, self.n_rows, replace=False)
            for record in self.records.values():
                updated = self._update(drawn, record)
            self._refit(drawn, updated)
            if draw < n_retrains:
                kept = np.delete(np.arange(len(self.data.y_train)), drawn)
                retrains.train(self.data.X_train[kept], self.data.y_train[kept])
        for record in self.records.values():
            self._say(record)
        return list(self.records.values())

    def _update(self, drawn: NDArray[np.int64], record: Record) -> Any:
        model = copy_of(self.model, self.spare, fidelity=record.case["fidelity"])
        record.add("loss_before", self._loss(model, drawn))
        if self.way == "remove":
            seconds, report = timed(model.remove, drawn)
        else:
            X, y = self.data.X_test[drawn], self.data.y_test[drawn]
            seconds, report = timed(model.add, X, y)
        record.add("update_seconds", seconds)
        record.add("loss_after", self._loss(model, drawn))
        refitted = report.strategy == "refit"
        record.add("refits", refitted)
        visits = model.n_rows_ * self.trees
        record.add("rows_regrown", 1.0 if refitted else report.rows_regrown / visits)
        add_estimate(record, report, self.n_rows)
        return model

    def _refit(self, drawn: NDArray[np.int64], updated: Any) -> None:
        """Refit the updated model, which keeps its rows and bins."""
        seconds, _ = timed(updated.refit)
        loss = self._loss(updated, drawn)
        for record in self.records.values():
            record.add("refit_seconds", seconds)
            record.add("loss_refitted", loss)

    def _loss(self, model: Any, drawn: NDArray[np.int64]) -> float:
        data = self.data
        X, y = (data.X_train, data.y_train) if self.way == "remove" else (data.X_test, data.y_test)
        return log_loss(model.predict_proba(X[drawn]), y[drawn])

    def _say(self, record: Record) -> None:
        self.plan.say(
            f"{record.data}  {record.case['way']} {_size(record)}  {_target(record)}"
            f"  {1e3 * (record.median('update_seconds') or 0):.1f} ms  {pooled(record)}"
            f"  estimated {in_digits(estimated(record))}"
        )


def _size(record: Record) -> str:
    """Size of an update, as in "5 rows" or "0.1% (39)"."""
    share, n_rows = float(record.case["share"]), record.case["rows"]
    if share >= 1:
        return "1 row" if n_rows == 1 else f"{n_rows} rows"
    return f"{100 * share:g}% ({n_rows})"


def _target(record: Record) -> str:
    """Fidelity that was the target; runs from before it existed have a tolerance."""
    fidelity = record.case.get("fidelity")
    return f"tolerance {record.case['tolerance']:g}" if fidelity is None else f"{fidelity:g}"


CAPTION = (
    "Forgetting is (loss of the removed rows after the update - before) / (their loss after a "
    "refit - before), summed over all draws, with a 95% bootstrap interval over the draws; "
    "learning is the same ratio for added rows, which were not used by the fit. The untouched "
    "model has 0 by definition. The refit is `refit()` of the updated model, with the same rows "
    'and bins. Fidelity is the target of the updates. The column "estimated" is the fidelity '
    "that the updates report, without a refit, over all draws; a draw that was a refit counts with "
    "the change that was measured. Rows regrown are a percentage of the rows visited by one full "
    "training; a refit has 100%. Seconds are medians over the draws; LightGBM's are its best, on "
    "the remaining rows."
)


def tables(run: Run) -> str:
    """One table for removals and one for additions."""
    ways: dict[Way, str] = {"remove": "Removing", "add": "Adding"}
    there = [way for way in ways if any(r.case.get("way") == way for r in run.records)]
    parts = [f"**{ways[way]}**\n\n{_table(run, way)}" for way in there]
    return "\n\n".join([CAPTION, *parts, quietness(run)])


def _table(run: Run, way: Way) -> str:
    rows = []
    for record in run.records:
        if record.failure or record.case.get("way") != way:
            continue
        draws = len(record.samples["update_seconds"])
        regrown = 100 * (sum(record.samples["rows_regrown"]) / draws)
        faster = times_faster(run, record, "update_seconds")
        rows.append(
            [
                record.data,
                _size(record),
                _target(record),
                f"**{pooled(record)}**",
                in_digits(estimated(record)),
                f"{regrown:.1f}%",
                f"{sum(record.samples['refits']):.0f} of {draws}",
                in_seconds(record.median("update_seconds") or 0.0),
                in_seconds(record.median("refit_seconds") or 0.0),
                "-" if faster is None else fold(faster),
            ]
        )
    head = [
        "data set",
        "rows",
        "fidelity",
        "forgetting" if way == "remove" else "learning",
        "estimated",
        "rows regrown",
        "draws that were refits",
        "update",
        "`refit()`",
        "speed-up over LightGBM's retrain",
    ]
    return table(head, rows)


def goals(run: Run | None) -> list[Goal]:
    """Only the default fidelity counts."""
    faster = "of the rows: speed-up over LightGBM's retrain"
    forgetting = {share: _ratios(run, "remove", share) for share in SHARES}
    learning = {share: _ratios(run, "add", share) for share in SHARES}
    return [
        *(
            Goal(
                f"removing 0.1% {faster}, {what}",
                SPEEDS[names[0]],
                _faster(run, FEW, names),
                fold,
                least=True,
            )
            for what, names in (("two classes", TWO_CLASSES), ("more classes", MORE_CLASSES))
        ),
        Goal(f"removing 1% {faster}", SPEED_OF_MANY, _faster(run, MANY, SPEEDS), fold, least=True),
        Goal("forgetting of 0.1%, at worst", 0.65, forgetting[FEW], times, least=True),
        Goal("forgetting of 0.1%, on average", 0.85, forgetting[FEW], times, mean=True, least=True),
        Goal("forgetting of 1%, on average", 0.75, forgetting[MANY], times, mean=True, least=True),
        Goal("learning of 0.1%, on average", 0.75, learning[FEW], times, mean=True, least=True),
        Goal("learning of 1%, on average", 0.75, learning[MANY], times, mean=True, least=True),
    ]


def _find(run: Run | None, name: str, way: Way, share: float) -> Record | None:
    return run.find(name, OURS, way=way, share=share, default=True) if run is not None else None


def _ratios(run: Run | None, way: Way, share: float) -> dict[str, float | None]:
    return {name: pooled(_find(run, name, way, share)).value for name in TWO_CLASSES}


def _faster(run: Run | None, share: float, names: Iterable[str]) -> dict[str, float | None]:
    return {
        name: times_faster(run, _find(run, name, "remove", share), "update_seconds")
        if run is not None
        else None
        for name in names
    }


PART = Part(
    "fractions",
    data=tuple(SPEEDS),
    quick_data=("adult",),
    measure=measure,
    tables=tables,
    goals=goals,
    peers=(LIBRARIES[YARDSTICK],),
    repeats=3,
)
