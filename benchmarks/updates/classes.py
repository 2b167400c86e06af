"""Classes are added one at a time: is the model as accurate as one fitted to all?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import Goal, points
from benchmarks.libraries import OURS
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import new_model, timed
from datasets import Dataset

DATA = ("optdigits", "pendigits", "letter")
ORDERS, QUICK_ORDERS = 3, 1  # orders of the classes: numerical, then random
LIMIT = 0.003


def measure(name: str, plan: Plan) -> list[Record]:
    """Fit on two classes, then add the rows of each further one."""
    data = datasets.load(name)
    record = Record(name, OURS)
    seconds, whole = timed(new_model(plan).fit, data.X_train, data.y_train)
    record.add("fit_seconds", seconds)
    record.add("error_of_fit", _error(whole, data))
    rng = np.random.default_rng(0)
    classes = np.unique(data.y_train)
    record.case["classes"] = len(classes)
    for order in range(QUICK_ORDERS if plan.quick else ORDERS):
        arrival = classes if order == 0 else rng.permutation(classes)
        model = _grow(data, arrival, plan, record)
        record.add("error", _error(model, data))
        plan.say(
            f"{name}  {len(classes)} classes one at a time  error {record.samples['error'][-1]:.2%}"
            f"  fitted on all {record.samples['error_of_fit'][0]:.2%}"
        )
    return [record]


def _grow(data: Dataset, arrival: NDArray[Any], plan: Plan, record: Record) -> Any:
    model = new_model(plan)
    steps = list(grow(model, data, arrival))
    record.add("add_seconds", sum(step.seconds for step in steps[1:]))
    record.add("refits", sum(step.refitted for step in steps[1:]))
    return model


@dataclass(frozen=True)
class Step:
    """The addition of a class: the classes known then, and its cost."""

    known: NDArray[Any]
    seconds: float
    refitted: bool


def grow(model: Any, data: Dataset, arrival: NDArray[Any]) -> Iterator[Step]:
    """Fit a model on the first two classes, then add the rows of one further class at a time.

    The caller may use the model after each step.
    """
    first = np.isin(data.y_train, arrival[:2])
    seconds, _ = timed(model.fit, data.X_train[first], data.y_train[first])
    yield Step(arrival[:2], seconds, refitted=False)
    for i, label in enumerate(arrival[2:], start=3):
        new = data.y_train == label
        seconds, report = timed(model.add, data.X_train[new], data.y_train[new])
        yield Step(arrival[:i], seconds, report.strategy == "refit")


def _error(model: Any, data: Dataset) -> float:
    return float(np.mean(model.predict(data.X_test) != data.y_test))


def tables(run: Run) -> str:
    """Test error of the updated model and of one fitted to all classes."""
    rows = []
    for record in run.records:
        if record.failure:
            continue
        errors, (fitted,) = record.samples["error"], record.samples["error_of_fit"]
        above = _above(run, record.data)
        rows.append(
            [
                record.data,
                f"{record.case['classes']}",
                in_percent(fitted),
                ", ".join(in_percent(error) for error in errors),
                "-" if above is None else f"**{points(above)}**",
                in_seconds(record.samples["fit_seconds"][0]),
                in_seconds(record.median("add_seconds") or 0.0),
                f"{record.median('refits'):g}",
            ]
        )
    head = [
        "data set",
        "classes",
        "error, fitted to all",
        "error, classes one at a time",
        "mean difference",
        "fit to all",
        "all additions",
        "additions that were refits",
    ]
    return (
        "The model starts with two classes, and the rows of one further class are added at a time. "
        "The first figure is for the numerical order of the classes, the others for random "
        "orders.\n\n" + table(head, rows)
    )


def _above(run: Run | None, name: str) -> float | None:
    record = run.find(name, OURS) if run is not None else None
    if record is None or "error" not in record.samples:
        return None
    errors = record.samples["error"]
    return sum(errors) / len(errors) - record.samples["error_of_fit"][0]


def goals(run: Run | None) -> list[Goal]:
    """Mean over the orders."""
    values = {name: _above(run, name) for name in DATA}
    return [Goal("classes one at a time: error minus that of a fit to all", LIMIT, values, points)]


PART = Part("classes", DATA, ("optdigits",), measure, tables, goals)
