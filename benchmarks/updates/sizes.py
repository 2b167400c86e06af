"""From a few rows to half of them: an update should never cost much more than a refit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import copy_of, new_model, rows_of, timed
from datasets import Dataset

DATA = ("adult", "higgs_sample", "credit_info", "pendigits", "optdigits")
SHARES = (0.0001, 0.001, 0.01, 0.05, 0.10, 0.25, 0.50)
QUICK_SHARES = (0.01, 0.10, 0.50)
STRICT = ("adult", "higgs_sample")  # also under the rule that regrows most
LIMIT = 1.10


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Update a copy of the model with each share of the rows, then refit it."""
    data = datasets.load(name)
    model = new_model(plan).fit(data.X_train, data.y_train)
    rules: list[dict[str, Any]] = [{"update_rule": "fidelity", "fidelity": model.fidelity}]
    if name in STRICT:
        rules.append({"update_rule": "rank", "tolerance": 0.0})
    for way, rule in [*(("remove", rule) for rule in rules), ("add", rules[0])]:
        for share in QUICK_SHARES if plan.quick else SHARES:
            yield _measure_share(data, model, way, share, rule, plan)


def _measure_share(
    data: Dataset, model: Any, way: str, share: float, rule: dict[str, Any], plan: Plan
) -> Record:
    n_rows, spare = len(data.y_train), len(data.y_train) - 1
    drawn = np.random.default_rng(0).choice(spare, rows_of(share, n_rows), replace=False)
    X, y = data.X_train[drawn], data.y_train[drawn]
    record = Record(data.name, OURS, case={"way": way, "share": share, "rows": len(drawn), **rule})
    if way == "add":
        kept = np.delete(np.arange(n_rows), drawn)
        model = new_model(plan).fit(data.X_train[kept], data.y_train[kept], row_ids=kept)
    for _ in range(plan.repeats):
        updated = copy_of(model, spare, **rule)
        seconds, report = (
            timed(updated.remove, drawn) if way == "remove" else timed(updated.add, X, y)
        )
        record.add("update_seconds", seconds)
        record.add("refit_seconds", timed(updated.refit)[0])
        record.case["strategy"] = report.strategy
    plan.say(
        f"{data.name}  {_rule(record)}  {way} {share:.2%}"
        f"  {_ratio(record) or 0:.2f} of a refit ({record.case['strategy']})"
    )
    return record


def _rule(record: Record) -> str:
    """Rule of a record and its target or tolerance; "tolerance_rule" is in older runs."""
    name = record.case.get("update_rule", record.case.get("tolerance_rule"))
    return f"{name} {record.case['fidelity' if name == 'fidelity' else 'tolerance']:g}"


def _ratio(record: Record) -> float | None:
    update, refit = record.best("update_seconds"), record.best("refit_seconds")
    return update / refit if update is not None and refit else None


def tables(run: Run) -> str:
    """One row per data set, way and rule, one column per share."""
    shares = sorted({float(r.case["share"]) for r in run.records if not r.failure})
    lines: dict[tuple[str, str, str], dict[float, Record]] = {}
    for r in run.records:
        if not r.failure:
            key = (r.data, str(r.case["way"]), _rule(r))
            lines.setdefault(key, {})[float(r.case["share"])] = r
    rows = [
        [*key, *(_cell(by_share.get(share)) for share in shares)] for key, by_share in lines.items()
    ]
    head = ["data set", "way", "rule", *(f"{100 * share:g}%" for share in shares)]
    return (
        "Seconds of `remove` or `add` relative to `refit()` on the same rows, the best of "
        f'{run.repeats} each, and the seconds of the update. "refit" marks updates for which a '
        "refit was cheaper. The number behind a rule is its fidelity or its tolerance.\n\n"
        + table(head, rows)
    )


def _cell(record: Record | None) -> str:
    ratio = None if record is None else _ratio(record)
    if record is None or ratio is None:
        return "-"
    mark = ", refit" if record.case["strategy"] == "refit" else ""
    return f"**{ratio:.2f}** ({in_seconds(record.best('update_seconds') or 0.0)}{mark})"


def goals(run: Run | None) -> list[Goal]:
    """The worst share and rule of each data set counts."""
    return [
        Goal(
            "removing or adding 0.01% to 50%: time relative to a refit",
            LIMIT,
            {name: _worst(run, name) for name in DATA},
            times,
        )
    ]


def _worst(run: Run | None, name: str) -> float | None:
    records = [] if run is None else [r for r in run.records if r.data == name and not r.failure]
    if not set(SHARES) <= {record.case["share"] for record in records}:
        return None
    return max(ratio for record in records if (ratio := _ratio(record)) is not None)


PART = Part("sizes", DATA, ("adult",), measure, tables, goals)
