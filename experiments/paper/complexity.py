"""How the time of training and updates grows with rows, update size, leaves and bins."""

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
from experiments.harness.contenders.ours import Ours, Paper
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.paper_library import PAPER_LIBRARY
from experiments.harness.results import Results
from graftboost.audit.plotting import COLOURS, legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINING = "training"
NEVER = "update, structure kept"
RULES: dict[str, dict[str, Any]] = {
    NEVER: {"update_rule": "fidelity", "fidelity": 0.0},
    "update, default rule": Ours.parameters,
    "update, paper's rule": Paper.parameters,
}
SERIES = (TRAINING, *RULES)


@dataclass(frozen=True)
class Point:
    """One measurement, which changes one of these values."""

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
UPDATES: dict[Scale, int] = {"quick": 3, "full": 7}  # in sequence, of different rows

TITLES = {
    "rows": "rows D",
    "update": "rows of the update D'",
    "leaves": "leaves J",
    "bins": "bins B",
}

# Table 5: the orders of the steps for one tree.
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
    f"For one tree, Table 5 states {PAPER[TRAINING]} for training and {PAPER['update']} for an "
    "update. **Slopes** of log seconds over the log of the quantity: 1 means proportional, 0 means "
    "constant. Refits are excluded. The structure is kept with `fidelity=0`."
)


def cases(scale: Scale) -> Iterator[Case]:
    """Each quantity at each of its values; the common point is measured for each."""
    for grows, values in GROWTH[scale].items():
        for value in values:
            point = replace(BASE[scale], **{grows: value})
            measure = partial(_measure, point, TRAININGS[scale], UPDATES[scale])
            yield Case({"grows": grows, "value": value}, measure)


def _measure(point: Point, trainings: int, updates: int) -> Values:
    data = higgs_shaped(point.rows, 1)
    settings = Settings(leaves=point.leaves)
    warm_up(LIBRARIES[OURS], "classification", settings)
    model = PAPER_LIBRARY.model("classification", settings).set_params(max_bins=point.bins)
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
    model.remove(rows[-1])  # the first update may build state that later updates use
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
    """Seconds of one series over one quantity; None if most updates were refits."""

    def __init__(self, results: Results, grows: str, series: str) -> None:
        found = list(results.where(grows=grows))
        self.x = [float(done.labels["value"]) for done in found]
        self.seconds = [_in_place(done.values[series]) for done in found]

    def slope(self) -> float | None:
        """Exponent of the fitted power law."""
        fitted = self._fit()
        return None if fitted is None else fitted[0]

    def line(self) -> list[float]:
        """The fitted power law at the measured points."""
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
    """Slopes and the paper's orders, then the seconds."""
    names = [grows for grows in TITLES if any(results.where(grows=grows))]
    slopes = []
    for grows in names:
        cells = [_slope_text(Curve(results, grows, series)) for series in SERIES]
        of_training, of_update = EXPECTED[grows]
        slopes.append([TITLES[grows], of_training, cells[0], of_update, *cells[1:]])
    head = [
        "quantity",
        "paper, training",
        "training",
        "paper, update",
        *(series for series in SERIES[1:]),
    ]
    parts = [
        CAPTION,
        table(head, slopes),
        "**Seconds**, median. A dash means that most of the updates were refits.",
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
    """One panel for each quantity, with the fitted power laws and their exponents."""
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
            drawn.set_linestyle("")  # markers are measurements, lines are fits
        for curve, colour in zip(curves.values(), COLOURS, strict=False):
            axis.plot(x, curve.line(), color=colour, linewidth=1.2)
        logarithmic(axis, x=True)
        slopes = (curve.slope() for curve in curves.values())
        written = ", ".join("-" if slope is None else f"{slope:.2f}" for slope in slopes)
        axis.set_xlabel(f"{TITLES[grows]}\nslopes in the order of the legend: {written}")
        axis.set_ylabel("seconds")
    legend(figure, columns=4)
    return figure


def answer(results: Results) -> str:
    """Growth with the rows of training and of updates."""
    series = (TRAINING, NEVER, "update, default rule")
    training, kept, default = (Curve(results, "rows", each).slope() for each in series)
    if training is None or kept is None or default is None:
        return ""
    return (
        f"The time of training grows with the number of rows to the power {training:.2f}, and that "
        f"of an update that keeps the structure to the power {kept:.2f}; the paper states 1 and 0. "
        f"Under the default rule the power is {default:.2f}, because the cost of regrowing a node "
        "depends on its rows, which the paper's order for split finding omits."
    )


def remark(results: Results) -> str:
    """The size of the update, and terms that the paper's orders omit."""
    refits = sum(done.values[series]["refits"] for done in results.where() for series in RULES)
    sentences = []
    if (by_size := Curve(results, "update", NEVER).slope()) is not None:
        sentences.append(
            f"The time of an update grows with its rows to the power {by_size:.2f}, because rows "
            "share nodes and each call has a fixed cost."
        )
    sentences.append(
        "The paper's orders have no term for the features, nor for computing histograms, which "
        "takes most of the training time. They are stated per tree, so the number of trees is a "
        f"factor of all of them. {refits} updates were refits and are excluded. The data is "
        "synthetic, with 28 features and two classes."
    )
    return " ".join(sentences)


EXPERIMENT = Experiment(
    name="complexity",
    title="Complexity",
    question=(
        "Does the time of training and of removing rows grow as the paper states? One quantity "
        "varies at a time, starting from 100,000 rows (10,000 at the quick scale), 10 removed "
        "rows, 20 leaves and 1024 bins."
    ),
    paper="Table 5",
    caption=(
        "Seconds over each quantity, on logarithmic axes. Markers are measurements, lines are "
        "fitted power laws."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)
