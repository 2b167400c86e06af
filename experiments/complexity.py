"""How training and updates grow with the rows, the update, the leaves and the bins."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.libraries import LIBRARIES, OURS, warm_up
from benchmarks.markdown import in_seconds, table
from benchmarks.settings import Settings
from benchmarks.updates.timing import timed
from datasets import higgs_shaped
from experiments.contenders.ours import Ours, Paper
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Results
from graftboost.audit.plotting import COLOURS, legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINING = "training"
NEVER = "update, splits stay"
RULES: dict[str, dict[str, Any]] = {
    NEVER: {"tolerance_rule": "regret", "tolerance": math.inf},
    "update, default rule": Ours.parameters,
    "update, paper's rule": Paper.parameters,
}
SERIES = (TRAINING, *RULES)


@dataclass(frozen=True)
class Point:
    """One measurement: all but one of these stay as they are."""

    rows: int
    update: int = 10
    leaves: int = 20
    bins: int = 1024


BASE: dict[Scale, Point] = {"quick": Point(10_000), "full": Point(100_000)}
GROWTH: dict[Scale, dict[str, tuple[int, ...]]] = {
    "quick": {
        "rows": (2_500, 10_000, 40_000),
        "update": (1, 10, 100),
        "leaves": (5, 20, 80),
        "bins": (128, 1024, 4096),
    },
    "full": {
        "rows": (12_500, 25_000, 50_000, 100_000, 200_000, 400_000),
        "update": (1, 3, 10, 30, 100, 300, 1000),
        "leaves": (5, 10, 20, 40, 80, 160),
        "bins": (128, 256, 512, 1024, 2048, 4096),
    },
}
TRAININGS: dict[Scale, int] = {"quick": 1, "full": 3}
UPDATES: dict[Scale, int] = {"quick": 3, "full": 7}  # one after the other, of other rows

TITLES = {
    "rows": "rows D",
    "update": "rows of the update D'",
    "leaves": "leaves J",
    "bins": "bins B",
}

# Table 5, a tree: what is behind each step, and so what the exponents add up to.
PAPER = {
    TRAINING: "O(D) + O(BJ) + O(D log J)",
    "update": "O(D') + O(αBJσ) + O(D')",
}
EXPECTED = {
    "rows": ("1", "0"),
    "update": ("0", "up to 1"),
    "leaves": ("0 to 1", "0 to 1"),
    "bins": ("0 to 1", "0 to 1"),
}


CAPTION = (
    f"Table 5 has, for a tree, {PAPER[TRAINING]} for training and {PAPER['update']} for an update. "
    "**Slopes** of log seconds over the log of what grows: 1 is proportional, 0 does not grow. "
    "Updates that became refits are not in them. Splits stay with `tolerance=inf`."
)


def cases(scale: Scale) -> Iterator[Case]:
    """Each quantity at each of its values; the point that all share is measured with each."""
    for grows, values in GROWTH[scale].items():
        for value in values:
            point = replace(BASE[scale], **{grows: value})
            measure = partial(_measure, point, TRAININGS[scale], UPDATES[scale])
            yield Case({"grows": grows, "value": value}, measure)


def _measure(point: Point, trainings: int, updates: int) -> Values:
    data = higgs_shaped(point.rows, 1)
    settings = Settings(leaves=point.leaves)
    warm_up(LIBRARIES[OURS], "classification", settings)
    model = LIBRARIES[OURS].model("classification", settings).set_params(max_bins=point.bins)
    seconds = []
    for _ in range(trainings):
        gc.collect()
        seconds.append(timed(model.fit, data.X_train, data.y_train)[0])
    values: Values = {TRAINING: {"seconds": seconds, "refits": 0}}
    for name, rule in RULES.items():
        values[name] = _updates(copy.deepcopy(model).set_params(**rule), point, updates)
    return values


def _updates(model: Any, point: Point, n: int) -> Values:
    rows = np.random.default_rng(0).permutation(point.rows)
    model.remove(rows[-1])  # the first may build what later ones find there
    gc.collect()
    seconds, refits = [], 0
    for i in range(n):
        drawn = rows[i * point.update : (i + 1) * point.update]
        taken, report = timed(model.remove, drawn)
        if report.strategy == "refit":
            refits += 1
        else:
            seconds.append(taken)
    return {"seconds": seconds, "refits": refits}


class Curve:
    """Seconds of one series over one quantity; None where most updates were refits."""

    def __init__(self, results: Results, grows: str, series: str) -> None:
        found = list(results.where(grows=grows))
        self.x = [float(done.labels["value"]) for done in found]
        self.seconds = [_in_place(done.values[series]) for done in found]

    def slope(self) -> float | None:
        """Exponent of the power that fits best."""
        fitted = self._fit()
        return None if fitted is None else fitted[0]

    def line(self) -> list[float]:
        """The power that fits best, where there are measurements."""
        slope, height = self._fit() or (math.nan, math.nan)
        return [
            math.nan if seconds is None else math.exp(height) * x**slope
            for x, seconds in zip(self.x, self.seconds, strict=True)
        ]

    def _fit(self) -> tuple[float, float] | None:
        known = [(x, y) for x, y in zip(self.x, self.seconds, strict=True) if y is not None]
        if len(known) < 3:
            return None
        x, y = np.log(np.array(known)).T
        slope, height = np.polyfit(x, y, 1)
        return float(slope), float(height)


def _in_place(measured: Values) -> float | None:
    seconds = measured["seconds"]
    return median(seconds) if len(seconds) > measured["refits"] else None


def tables(results: Results) -> str:
    """Slopes beside the paper's orders, then the seconds themselves."""
    names = [grows for grows in TITLES if any(results.where(grows=grows))]
    slopes = []
    for grows in names:
        cells = [_slope_text(Curve(results, grows, series)) for series in SERIES]
        of_training, of_update = EXPECTED[grows]
        slopes.append([TITLES[grows], of_training, cells[0], of_update, *cells[1:]])
    head = [
        "what grows",
        "paper, training",
        "training",
        "paper, update",
        *(series for series in SERIES[1:]),
    ]
    parts = [
        CAPTION,
        table(head, slopes),
        "**Seconds**, median. A dash stands where most of the updates were refits.",
    ]
    for grows in names:
        curves = {series: Curve(results, grows, series) for series in SERIES}
        rows = [
            [series, *("-" if s is None else in_seconds(s) for s in curve.seconds)]
            for series, curve in curves.items()
        ]
        values = [f"{value:,.0f}" for value in curves[TRAINING].x]
        parts.append(table([TITLES[grows], *values], rows))
    return "\n\n".join(parts)


def _slope_text(curve: Curve) -> str:
    slope = curve.slope()
    return "-" if slope is None else f"**{slope:.2f}**"


def draw(results: Results) -> Figure:
    """A panel for each quantity, with the fitted powers and their exponents."""
    names = [grows for grows in TITLES if any(results.where(grows=grows))]
    figure, axes = panels(len(names), columns=2, size=(4.6, 3.2))
    for axis, grows in zip(axes, names, strict=True):
        curves = {series: Curve(results, grows, series) for series in SERIES}
        x = curves[TRAINING].x
        series = {
            name: [math.nan if s is None else s for s in curve.seconds]
            for name, curve in curves.items()
        }
        lines(axis, x, series)
        for drawn in axis.lines:
            drawn.set_linestyle("")  # the measurements are the markers, the line is the fit
        for curve, colour in zip(curves.values(), COLOURS, strict=False):
            axis.plot(x, curve.line(), color=colour, linewidth=1.2)
        logarithmic(axis, x=True)
        slopes = (curve.slope() for curve in curves.values())
        written = ", ".join("-" if slope is None else f"{slope:.2f}" for slope in slopes)
        axis.set_xlabel(f"{TITLES[grows]}\nslopes, as in the legend: {written}")
        axis.set_ylabel("seconds")
    legend(figure, columns=4)
    return figure


def remark(results: Results) -> str:
    """Where the measured growth is another than the paper's orders, and what is not in them."""
    slopes = {
        (grows, series): Curve(results, grows, series).slope()
        for grows in TITLES
        for series in SERIES
    }
    refits = sum(done.values[series]["refits"] for done in results.where() for series in RULES)
    words = []
    training, stay = slopes["rows", TRAINING], slopes["rows", NEVER]
    if training is not None and stay is not None:
        words.append(
            f"With the rows, training grows with exponent {training:.2f} and an update in which "
            f"all splits stay with {stay:.2f}, where the paper has 1 and 0."
        )
    default = slopes["rows", "update, default rule"]
    if default is not None:
        words.append(
            f"Under the default rule it is {default:.2f}: what a retrained node costs depends on "
            "the rows that reach it, which the paper's order for split finding leaves out."
        )
    by_size = slopes["update", NEVER]
    if by_size is not None:
        words.append(
            f"With the rows of the update it is {by_size:.2f}: rows share nodes, and a call has a "
            "cost of its own."
        )
    words.append(
        "The orders have no term for the features, nor for the histograms, which are most of "
        "training; and they are of a tree, so the number of trees is a factor of all of them. "
        f"{refits} updates were refits and are left out. The data are made: 28 features, two "
        "classes, and as many rows as one asks for."
    )
    return " ".join(words)


EXPERIMENT = Experiment(
    name="complexity",
    title="Complexity",
    question=(
        "Does the time of training and of removing rows grow as the paper says? One quantity grows "
        "at a time, from 100,000 rows (10,000 at the quick scale), 10 rows removed, 20 leaves and "
        "1024 bins."
    ),
    paper="Table 5",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)
