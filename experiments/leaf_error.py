"""What old gradients leave in the leaf values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.markdown import in_percent, table
from benchmarks.updates.timing import rows_of
from datasets import paper
from experiments.draws import RULES, SIZES, TITLES, WAYS, Draws, Rule, Way
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Results
from experiments.updated import before_and_after, each_way_and_size
from graftboost import audit
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL_SIZES = {**SIZES, "10%": 0.1, "50%": 0.5, "80%": 0.8}
KEPT = "kept"  # trees keep their structure, so every row keeps its old gradients
ALL_RULES: dict[str, Rule] = {**RULES, KEPT: {"tolerance_rule": "regret", "tolerance": np.inf}}
ALL_TITLES = {**TITLES, KEPT: "no node retrained"}

# Data sets, how many of their rows are used (None for all), and how often rows are drawn.
DATA: dict[Scale, dict[str, tuple[int | None, int]]] = {
    "quick": {"adult": (2000, 1), "pendigits": (1500, 1)},
    "full": {
        "adult": (None, 2),
        "credit_info": (None, 2),
        "optdigits": (None, 2),
        "pendigits": (None, 2),
        "letter": (None, 1),
        "covtype": (60_000, 1),
    },
}

# In per cent, by size.
PAPER: dict[tuple[str, Way], tuple[float, ...]] = {
    ("adult", "add"): (2.42, 4.59, 5.10, 5.30, 4.25, 3.55, 0.0),
    ("credit_info", "add"): (1.18, 6.57, 7.44, 7.43, 8.33, 0.0, 0.0),
    ("optdigits", "add"): (2.69, 3.48, 5.12, 5.92, 4.64, 0.0, 0.0),
    ("pendigits", "add"): (2.23, 4.12, 4.50, 4.70, 4.42, 0.0, 0.0),
    ("letter", "add"): (1.31, 5.78, 10.45, 11.75, 13.34, 6.26, 0.0),
    ("covtype", "add"): (0.17, 9.47, 11.68, 10.01, 4.96, 0.01, 0.0),
    ("adult", "remove"): (1.21, 3.63, 3.58, 3.40, 0.27, 0.0, 0.0),
    ("credit_info", "remove"): (0.0, 3.80, 3.76, 3.16, 0.39, 0.0, 0.0),
    ("optdigits", "remove"): (0.01, 1.40, 2.52, 3.07, 1.67, 0.0, 0.0),
    ("pendigits", "remove"): (0.19, 0.50, 1.15, 1.73, 0.97, 0.0, 0.0),
    ("letter", "remove"): (0.57, 1.88, 3.49, 3.74, 1.35, 0.0, 0.0),
    ("covtype", "remove"): (0.28, 4.31, 6.04, 4.48, 0.46, 0.0, 0.0),
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, each way, each size."""
    yield from each_way_and_size(DATA[scale], ALL_SIZES, _measure)


def _measure(name: str, max_rows: int | None, way: Way, size: str, n_draws: int) -> Values:
    draws = Draws(paper.load(name, max_rows=max_rows))
    n_rows = rows_of(ALL_SIZES[size], len(draws.data.y_train))
    found: dict[str, list[float]] = {}
    for seed in range(n_draws):
        drawn = draws.draw(n_rows, seed)
        before, after = before_and_after(draws, way, drawn, ALL_RULES)
        for rule, model in after.items():
            # Only what was removed can be taken from the model before, to see what it leaves there.
            alone = before if way == "remove" and rule == KEPT else None
            figures = audit.leaf_error(model, before=alone).figures
            found.setdefault(rule, []).append(figures["updated"])
            if figures.get("untouched") is not None:
                found.setdefault("left alone", []).append(figures["untouched"])
    return {who: float(np.mean(errors)) for who, errors in found.items()}


def _line(results: Results, name: str, way: Way, who: str) -> list[float | None]:
    found = [results.find(data=name, way=way, size=size) for size in ALL_SIZES]
    return [None if values is None else values.get(who) for values in found]


def tables(results: Results) -> str:
    """One row for each data set, way and rule, one column for each size."""
    rows: list[list[str]] = []
    who = {**ALL_TITLES, "left alone": "left alone"}
    for name in results.all_of("data"):
        for way in WAYS:
            for one, title in who.items():
                line = _line(results, name, way, one)
                if any(value is not None for value in line):
                    cells = ["-" if value is None else in_percent(value) for value in line]
                    rows.append([name, way, title, *cells])
            papers = PAPER.get((name, way))
            if papers:
                rows.append([name, way, "the paper", *(f"{value:.2f}%" for value in papers)])
    return table(["data set", "way", "", *ALL_SIZES], rows)


def draw(results: Results) -> Figure:
    """One panel for each data set, rows removed and added."""
    names = results.all_of("data")
    figure, axes = panels(2 * len(names), columns=4, size=(3.2, 2.4))
    for i, axis in enumerate(axes):
        name, way = names[i // 2], WAYS[i % 2]
        series: dict[str, Any] = {
            title: _numbers(_line(results, name, way, one)) for one, title in ALL_TITLES.items()
        }
        if (name, way) in PAPER:
            series["the paper"] = PAPER[name, way]
        series["left alone"] = _numbers(_line(results, name, way, "left alone"))
        lines(
            axis, [size.replace(" row", "") for size in ALL_SIZES], series, controls=["left alone"]
        )
        axis.set_title(f"{name}, {'removed' if way == 'remove' else 'added'}")
        axis.set_ylim(bottom=0)
        if i % 4 == 0:
            axis.set_ylabel("error, %")
    legend(figure, columns=5)
    return figure


def _numbers(line: list[float | None]) -> list[float]:
    return [float("nan") if value is None else 100 * value for value in line]


def remark(results: Results) -> str:
    """How errors grow, and when they vanish."""
    rows = list(results.where())
    worst = max(rows, key=lambda done: done.values["graftboost"], default=None)
    text = (
        "Rows keep the gradients that they recorded until their node is retrained, so leaf values "
        "drift from those that the present trees would have; `refresh()` brings the error to 0 in "
        "about the time of a prediction. As in the paper the error grows with the rows that change "
        "and is 0 where so many change that all is trained again: ours refits as soon as that is "
        'cheaper, the paper\'s program when every node has failed. "No node retrained" shows what '
        "old gradients alone come to: the paper's rule retrains from fresh ones as ours does."
    )
    if worst is not None:
        text += (
            f" Our largest error is {in_percent(worst.values['graftboost'])} "
            f"({worst.labels['data']}, {worst.labels['way']} {worst.labels['size']})."
        )
    return text


EXPERIMENT = Experiment(
    name="leaf-error",
    title="Leaf values",
    question=(
        "How far are leaf values after an update from those that the same trees get from fresh "
        "gradients? The sum of the distances over all leaves, of the sum of the latter's sizes; "
        '"left alone" is the model before a removal, against fresh values on the rows left.'
    ),
    paper="Table 13",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)
