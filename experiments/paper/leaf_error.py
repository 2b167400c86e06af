"""The error that outdated recorded gradients cause in leaf values (Table 13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.markdown import in_percent, table
from benchmarks.updates.timing import rows_of
from datasets import paper
from experiments.harness.draws import RULES, SIZES, TITLES, WAYS, Draws, Rule, Way
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Done, Results
from experiments.harness.update_cases import before_and_after, each_way_and_size
from graftboost import audit
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL_SIZES = {**SIZES, "10%": 0.1, "50%": 0.5, "80%": 0.8}
KEPT = "kept"  # the structure is kept, so every row keeps its recorded gradients
ALL_RULES: dict[str, Rule] = {**RULES, KEPT: {"update_rule": "fidelity", "fidelity": 0.0}}
UNTOUCHED = "untouched"
ALL_TITLES = {**TITLES, KEPT: "no node regrown"}

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
            # The untouched model can only be compared on the remaining rows of a removal.
            control = before if way == "remove" and rule == KEPT else None
            figures = audit.leaf_error(model, before=control).figures
            found.setdefault(rule, []).append(figures["updated"])
            if (untouched := figures.get("untouched")) is not None:
                found.setdefault(UNTOUCHED, []).append(untouched)
    return {who: float(np.mean(errors)) for who, errors in found.items()}


def _line(results: Results, name: str, way: Way, who: str) -> list[float | None]:
    found = [results.find(data=name, way=way, size=size) for size in ALL_SIZES]
    return [None if values is None else values.get(who) for values in found]


def tables(results: Results) -> str:
    """One row for each data set, way and rule, one column for each size."""
    rows: list[list[str]] = []
    who = {**ALL_TITLES, UNTOUCHED: UNTOUCHED}
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
    """Two panels for each data set, rows removed and rows added."""
    names = results.all_of("data")
    figure, axes = panels(2 * len(names), columns=4, size=(3.2, 2.4))
    for i, axis in enumerate(axes):
        name, way = names[i // 2], WAYS[i % 2]
        series: dict[str, Any] = {
            title: _numbers(_line(results, name, way, one)) for one, title in ALL_TITLES.items()
        }
        if (name, way) in PAPER:
            series["the paper"] = PAPER[name, way]
        series[UNTOUCHED] = _numbers(_line(results, name, way, UNTOUCHED))
        lines(axis, [size.replace(" row", "") for size in ALL_SIZES], series, controls=[UNTOUCHED])
        axis.set_title(f"{name}, {'removed' if way == 'remove' else 'added'}")
        # The untouched model leaves the panel for large updates, which would hide all other lines.
        known = [v for one, line in series.items() if one != UNTOUCHED for v in line if v == v]
        axis.set_ylim(0, 1.1 * max(known, default=0.0) or None)
        if i % 4 == 0:
            axis.set_ylabel("error, %")
    legend(figure, columns=5)
    return figure


def _numbers(line: list[float | None]) -> list[float]:
    return [float("nan") if value is None else 100 * value for value in line]


def _worst(results: Results) -> Done | None:
    return max(results.where(), key=lambda done: done.values["graftboost"], default=None)


def answer(results: Results) -> str:
    """The largest error, and how to remove it."""
    worst = _worst(results)
    if worst is None:
        return ""
    labels = worst.labels
    return (
        "After an update, leaf values differ from those computed with fresh gradients by at most "
        f"{in_percent(worst.values['graftboost'])} ({labels['data']}, {labels['way']} "
        f"{labels['size']}). `refresh()` removes this error; it takes a few times as long as a "
        "prediction."
    )


def remark(results: Results) -> str:
    """How the error grows, when it vanishes, and why updates can exceed the untouched model."""
    return (
        "Rows keep their recorded gradients until one of their nodes is regrown, so leaf values "
        "drift from those that fresh gradients would give. As in the paper, the error grows with "
        "the number of changed rows, and is 0 after a refit: graftboost refits as soon as that is "
        "cheaper, the paper's program when all nodes have failed the check. With \"no node "
        'regrown", the error is that of outdated gradients alone. The updated model can have a '
        "larger error than the untouched one, because a regrown node changes the scores of its "
        "rows in all later trees, whose gradients were recorded before; the untouched model is "
        "compared with its own, unchanged trees. The error is thus the price of regrowing nodes "
        "without a pass over all rows, not a measure of what was forgotten."
    )


EXPERIMENT = Experiment(
    name="leaf-error",
    title="Leaf values",
    question=(
        "How far are leaf values after an update from those that the same trees have with fresh "
        "gradients? The error is the sum of the absolute differences over all leaves, divided by "
        "the sum of the absolute fresh values. The untouched model is the model before a removal, "
        "compared with fresh values on the remaining rows."
    ),
    paper="Table 13",
    caption=(
        "Error of the leaf values by the number of changed rows. The updated model can have a "
        "larger error than the untouched one (dashed): a regrown node changes the scores of its "
        "rows in all later trees, whose gradients were recorded before, while the trees of the "
        "untouched model are unchanged. The error drops to 0 where the update is a refit; that of "
        "the untouched model leaves the panels for large updates."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)
