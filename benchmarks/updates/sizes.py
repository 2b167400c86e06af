"""From a few rows to half of them: an update must never cost much more than a refit."""

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

DATA = ("adult", "higgs_sample", "credit_info", "pendigits", "optdigits")
SHARES = (0.0001, 0.001, 0.01, 0.05, 0.10, 0.25, 0.50)
QUICK_SHARES = (0.01, 0.10, 0.50)
STRICT = ("adult", "higgs_sample")  # also under the rule that retrains most
LIMIT = 1.15


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Remove each share from a copy of the model, then refit that copy."""
    data = datasets.load(name)
    model = new_model(plan).fit(data.X_train, data.y_train)
    rules: list[dict[str, Any]] = [
        {"tolerance_rule": model.tolerance_rule, "tolerance": model.tolerance}
    ]
    if name in STRICT:
        rules.append({"tolerance_rule": "rank", "tolerance": 0.0})
    for rule in rules:
        for share in QUICK_SHARES if plan.quick else SHARES:
            yield _measure_share(name, model, share, rule, plan)


def _measure_share(name: str, model: Any, share: float, rule: dict[str, Any], plan: Plan) -> Record:
    n_rows, spare = model.n_rows_, model.n_rows_ - 1
    drawn = np.random.default_rng(0).choice(spare, rows_of(share, n_rows), replace=False)
    record = Record(name, OURS, case={"share": share, "rows": len(drawn), **rule})
    for _ in range(plan.repeats):
        updated = copy_of(model, spare, **rule)
        seconds, report = timed(updated.remove, drawn)
        record.add("update_seconds", seconds)
        record.add("refit_seconds", timed(updated.refit)[0])
        record.case["strategy"] = report.strategy
    plan.say(
        f"{name}  {rule['tolerance_rule']} {rule['tolerance']:g}  {share:.2%} out"
        f"  {_ratio(record) or 0:.2f} of a refit ({record.case['strategy']})"
    )
    return record


def _ratio(record: Record) -> float | None:
    update, refit = record.best("update_seconds"), record.best("refit_seconds")
    return update / refit if update is not None and refit else None


def tables(run: Run) -> str:
    """One row a data set and rule, one column a share."""
    shares = sorted({float(r.case["share"]) for r in run.records if not r.failure})
    lines: dict[tuple[str, str, float], dict[float, Record]] = {}
    for r in run.records:
        if not r.failure:
            key = (r.data, str(r.case["tolerance_rule"]), float(r.case["tolerance"]))
            lines.setdefault(key, {})[float(r.case["share"])] = r
    rows = [
        [name, f"{rule} {tolerance:g}", *(_cell(by_share.get(share)) for share in shares)]
        for (name, rule, tolerance), by_share in lines.items()
    ]
    head = ["data set", "rule and tolerance", *(f"{100 * share:g}%" for share in shares)]
    return (
        "Seconds of `remove` over seconds of `refit()` on the same remaining rows, best of "
        f'{run.repeats} each, and the seconds of `remove`; with "refit" where it found that '
        "training all again was cheaper.\n\n" + table(head, rows)
    )


def _cell(record: Record | None) -> str:
    ratio = None if record is None else _ratio(record)
    if record is None or ratio is None:
        return "-"
    mark = ", refit" if record.case["strategy"] == "refit" else ""
    return f"**{ratio:.2f}** ({in_seconds(record.best('update_seconds') or 0.0)}{mark})"


def goals(run: Run | None) -> list[Goal]:
    """The worst share of each data set counts, under each rule that was measured."""
    return [
        Goal(
            "rows out to a refit of the rest, 0.01% to 50%",
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
