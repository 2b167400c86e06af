"""Classes are added one at a time: is the model as accurate as one trained on all of them?"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.settings import Settings
from benchmarks.updates.classes import grow
from benchmarks.updates.timing import timed
from datasets import Dataset, paper
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.paper_library import PAPER_LIBRARY
from experiments.harness.results import Results
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Data sets and how many of their rows are used; None for all.
DATA: dict[Scale, dict[str, int | None]] = {
    "quick": {"optdigits": 1500, "pendigits": 1500, "covtype": 5000},
    "full": {"optdigits": None, "pendigits": None, "letter": None, "covtype": 100_000},
}
ORDERS: dict[Scale, int] = {"quick": 1, "full": 2}  # numerical, then random

MODELS = ("updated", "retrained", "untouched")
TESTS = {"full": "all test rows", "learned": "test rows of known classes"}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, in each order of its classes."""
    for name, max_rows in DATA[scale].items():
        for order in range(ORDERS[scale]):
            yield Case({"data": name, "order": order}, partial(_measure, name, max_rows, order))


def _measure(name: str, max_rows: int | None, order: int) -> Values:
    data = paper.load(name, max_rows=max_rows)
    classes = np.unique(data.y_train)
    arrival = classes if order == 0 else np.random.default_rng(order).permutation(classes)
    library, settings = PAPER_LIBRARY, Settings()
    updated = library.model("classification", settings)
    untouched: Any = None
    steps = []
    for step in grow(updated, data, arrival):
        if untouched is None:
            untouched = copy.deepcopy(updated)
        known = np.isin(data.y_train, step.known)
        retrained = library.model("classification", settings)
        seconds, _ = timed(retrained.fit, data.X_train[known], data.y_train[known])
        models = dict(zip(MODELS, (updated, retrained, untouched), strict=True))
        steps.append(
            {
                "classes": len(step.known),
                "seconds": step.seconds,
                "retrain_seconds": seconds,
                "refitted": step.refitted,
                **{model: _accuracy(m, data, step.known) for model, m in models.items()},
            }
        )
    return {"steps": steps}


def _accuracy(model: Any, data: Dataset, known: NDArray[Any]) -> dict[str, float]:
    right = model.predict(data.X_test) == data.y_test
    learned = np.isin(data.y_test, known)
    return {"full": float(np.mean(right)), "learned": float(np.mean(right[learned]))}


def tables(results: Results) -> str:
    """Final accuracy, and the largest difference on the way."""
    rows = []
    for done in results.where():
        steps = done.values["steps"]
        last, additions = steps[-1], steps[1:]
        rows.append(
            [
                str(done.labels["data"]),
                "numerical" if done.labels["order"] == 0 else "random",
                f"{last['classes']}",
                *(in_percent(last[model]["full"]) for model in MODELS),
                f"{100 * _widest(steps, 'full'):.2f}",
                f"{100 * _widest(steps, 'learned'):.2f}",
                in_seconds(sum(step["seconds"] for step in additions)),
                in_seconds(sum(step["retrain_seconds"] for step in additions)),
                f"{sum(step['refitted'] for step in additions)} of {len(additions)}",
            ]
        )
    head = [
        "data set",
        "order of the classes",
        "classes",
        *(f"final accuracy, {model}" for model in MODELS),
        "largest difference of updated and retrained, all test rows, points",
        "test rows of known classes, points",
        "seconds of all additions",
        "of all retrains",
        "additions that were refits",
    ]
    return (
        "The model starts with two classes, and the rows of one further class are added at each "
        "step. The retrained model is fitted at each step, with new bins, to the rows of the "
        "classes known by then; the untouched model only knows the first two classes.\n\n"
        + table(head, rows)
    )


def _widest(steps: list[Values], test: str) -> float:
    return max(abs(step["updated"][test] - step["retrained"][test]) for step in steps)


def draw(results: Results) -> Figure:
    """One panel for each data set: accuracy on both sets of test rows, numerical order."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=2, size=(4.6, 2.9))
    for axis, name in zip(axes, names, strict=True):
        values = results.find(data=name, order=0)
        if values is None:
            continue
        steps = values["steps"]
        series = {
            f"{model}, {title}": [100 * step[model][test] for step in steps]
            for model in ("retrained", "updated")
            for test, title in TESTS.items()
        }
        series["untouched, all test rows"] = [100 * s["untouched"]["full"] for s in steps]
        lines(
            axis,
            [step["classes"] for step in steps],
            series,
            controls=("untouched, all test rows",),
        )
        for drawn in axis.lines:
            if str(drawn.get_label()).startswith("retrained"):
                drawn.set(linewidth=6, alpha=0.4, marker="")  # visible below a line that covers it
        axis.set_title(name)
        axis.set_xlabel("classes known")
        axis.set_ylabel("accuracy, per cent")
        axis.set_ylim(0, 103)
    legend(figure, columns=2)
    return figure


def answer(results: Results) -> str:
    """How far the updated model is from the retrained one in the end."""
    gaps: dict[str, float] = {}
    refits = additions = 0
    for done in results.where():
        steps = done.values["steps"]
        name = str(done.labels["data"])
        gap = steps[-1]["updated"]["full"] - steps[-1]["retrained"]["full"]
        gaps[name] = min(gap, gaps.get(name, gap))
        refits += sum(step["refitted"] for step in steps[1:])
        additions += len(steps) - 1
    if not gaps:
        return ""
    worst = min(gaps, key=gaps.__getitem__)
    return (
        "After all classes are added, the accuracy differs from that of a retrained model by "
        f"{100 * gaps[worst]:+.2f} points at worst ({worst}). A new class changes the number of "
        f"trees and the loss of all of them, so {refits} of {additions} additions were refits and "
        "take as long as a retrain."
    )


def remark(results: Results) -> str:
    """The difference from the paper and from a retrain."""
    return (
        "The paper shows curves without figures, in which both models are nearly identical at "
        "every step. It starts with one class; here the model starts with two, because `fit` "
        "requires two classes. The updated model differs from a retrained one in its bins, which "
        "are those of the rows of the first two classes. On all test rows, the accuracy of any "
        "model grows with the classes that it knows; the untouched model shows what is achieved "
        "without them."
    )


EXPERIMENT = Experiment(
    name="classes",
    title="Unseen classes",
    question=(
        "Rows of classes that the model does not know are added, one class at a time. How accurate "
        "is the model on all test rows and on those of the known classes, compared with a model "
        "retrained at each step?"
    ),
    paper='appendix "Data Addition with More Classes"',
    caption=(
        "Accuracy while classes are added in numerical order, on all test rows and on those of "
        "known classes. The wide, pale lines are the retrained model; the dashed line is the "
        "untouched model."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)
