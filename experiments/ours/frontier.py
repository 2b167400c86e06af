"""What forgetting costs: all update rules, from regrowing nothing to regrowing everything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import datasets
from benchmarks.libraries import LIBRARIES, OURS
from benchmarks.markdown import listed, table
from benchmarks.updates.forgetting import estimated, in_digits, pooled
from benchmarks.updates.timing import rows_of
from experiments.harness.draws import Draws, Rule
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.records import as_values, find, mean, records_of
from experiments.harness.results import Results
from graftboost.audit.plotting import COLOURS, CONTROL, MARKERS, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.results import Record
    from graftboost.audit.ratio import Ratio

SHARE = 0.001
# Tolerances, and for the fidelity rule targets.
VALUES: dict[Scale, dict[str, tuple[float, ...]]] = {
    "quick": {"rank": (0.0, 0.1), "regret": (0.3, 1.2, 10.0), "fidelity": (0.5, 0.85)},
    "full": {
        "rank": (0.0, 0.02, 0.05, 0.1, 0.2, 0.5),
        "regret": (0.0, 0.3, 0.6, 1.2, 3.0, 10.0, 100.0),
        "fidelity": (0.3, 0.5, 0.7, 0.85, 0.95),
    },
}
TITLES = {"rank": "rank, the paper's σ", "regret": "regret", "fidelity": "fidelity, the default"}
PAPERS, DEFAULT = ("rank", 0.1), ("fidelity", 0.85)  # the paper's choice and ours
UNTOUCHED, REFITTED = "untouched", "refit"

# Where the value of a point is written, and its side that is nearest to the point.
PLACES: dict[str, tuple[tuple[float, float], str]] = {
    "rank": ((3, -10), "left"),
    "regret": ((-3, 4), "right"),
    "fidelity": ((4, -9), "left"),
}

# Data sets and how often rows are drawn.
DATA: dict[Scale, dict[str, int]] = {
    "quick": {"adult": 2},
    "full": {
        "adult": 12,
        "electricity": 12,
        "credit_info": 8,
        "higgs_sample": 20,
        "pendigits": 12,
        "optdigits": 12,
        "letter": 4,
    },
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set."""
    for name, n_draws in DATA[scale].items():
        yield Case({"data": name}, partial(_measure, name, n_draws, VALUES[scale]))


def _measure(name: str, n_draws: int, chosen: dict[str, tuple[float, ...]]) -> Values:
    rules: dict[str, Rule] = {
        f"{rule} {value:g}": {"update_rule": rule, _parameter(rule): value}
        for rule, values in chosen.items()
        for value in values
    }
    data = datasets.load(name)
    draws = Draws(data, rules=rules, library=LIBRARIES[OURS])
    return as_values(draws.measure("remove", rows_of(SHARE, len(data.y_train)), n_draws))


def _parameter(rule: str) -> str:
    """The parameter of the estimator that a rule uses."""
    return "fidelity" if rule == "fidelity" else "tolerance"


def _points(results: Results, name: str, rule: str) -> list[tuple[float, Record]]:
    """Tolerances or targets in increasing order, with the record of each."""
    records = records_of(results, data=name)
    values = sorted(float(r.library.split()[1]) for r in records if r.library.startswith(rule))
    found = [(v, find(records, name, f"{rule} {v:g}")) for v in values]
    return [(v, record) for v, record in found if record is not None]


def tables(results: Results) -> str:
    """Forgetting, measured and estimated, and its cost at each tolerance and target."""
    rows = []
    for name in results.all_of("data"):
        rows.append([name, UNTOUCHED, "-", "0", "-", "0%", "0", "-"])
        for rule, title in TITLES.items():
            for value, record in _points(results, name, rule):
                draws = len(record.samples["refits"])
                rows.append(
                    [
                        "",
                        title,
                        f"{value:g}",
                        str(pooled(record)),
                        in_digits(estimated(record) if rule == "fidelity" else None),
                        f"{100 * mean(record, 'rows_regrown'):.1f}%",
                        f"{_seconds(record):.2f}",
                        f"{sum(record.samples['refits']):.0f} of {draws}",
                    ]
                )
        rows.append(["", REFITTED, "-", "1", "-", "100%", "1", "-"])
    head = [
        "data set",
        "rule",
        "fidelity or tolerance",
        "forgetting",
        "estimated",
        "rows regrown",
        "seconds relative to a refit",
        "refits",
    ]
    return (
        "0.1% of the rows are removed. Forgetting is pooled over the draws, with a 95% bootstrap "
        'interval over the draws. The column "estimated" is the fidelity that updates under the '
        "fidelity rule report, without a refit, pooled in the same way; a draw that was a refit "
        "counts with the change that was measured. Rows regrown are a percentage of the rows "
        "visited by one full training; a refit has 100%. Seconds are medians.\n\n"
        + table(head, rows)
    )


def _seconds(record: Record) -> float:
    update, refit = record.median("update_seconds"), record.median("refit_seconds")
    return update / refit if update and refit else math.nan


def draw(results: Results) -> Figure:
    """Forgetting over the rows regrown, one line for each rule."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=2, size=(4.8, 3.4))
    for i, (axis, name) in enumerate(zip(axes, names, strict=True)):
        for (rule, title), colour, marker in zip(TITLES.items(), COLOURS, MARKERS, strict=False):
            points = _points(results, name, rule)
            if not points:
                continue  # results from before the rule existed
            x = [max(100 * mean(record, "rows_regrown"), 0.01) for _, record in points]
            ratios = [pooled(record) for _, record in points]
            y = [math.nan if ratio.value is None else ratio.value for ratio in ratios]
            axis.errorbar(
                x,
                y,
                yerr=_interval(ratios),
                color=colour,
                marker=marker,
                markersize=4,
                elinewidth=0.8,
                capsize=2,
                label=title,
            )
            offset, side = PLACES[rule]
            for (value, _), at_x, at_y in zip(points, x, y, strict=True):
                axis.annotate(
                    f"{value:g}",
                    (at_x, at_y),
                    xytext=offset,
                    textcoords="offset points",
                    ha=side,
                    fontsize=7,
                    color=colour,
                )
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.axhline(1, label="refit: forgetting 1", **CONTROL)
        axis.set_ylim(bottom=0)
        axis.set_title(name)
        axis.set_xlabel("rows regrown, per cent of a full training")
        if i % 2 == 0:
            axis.set_ylabel("forgetting")
    legend(figure)
    return figure


def _interval(ratios: list[Ratio]) -> list[list[float]]:
    """How far the intervals extend below and above the values; 0 where there is none."""
    below = [(r.value or 0) - r.low if r.low is not None else 0.0 for r in ratios]
    above = [r.high - (r.value or 0) if r.high is not None else 0.0 for r in ratios]
    return [[max(0.0, end) for end in below], [max(0.0, end) for end in above]]


def _at(results: Results, name: str, choice: tuple[str, float]) -> tuple[float, float] | None:
    """Forgetting under a rule and its value, and the rows regrown as a percentage."""
    rule, value = choice
    record = dict(_points(results, name, rule)).get(value)
    if record is None:
        return None
    return pooled(record).value or 0.0, 100 * mean(record, "rows_regrown")


def answer(results: Results) -> str:
    """Forgetting and cost of the default and the paper's rule, as ranges over the data sets."""
    texts = []
    for choice in (DEFAULT, PAPERS):
        known = [v for name in results.all_of("data") if (v := _at(results, name, choice))]
        if known:
            forgetting, cost = zip(*known, strict=True)
            texts.append(
                f"{min(forgetting):.2f} to {max(forgetting):.2f} for {min(cost):.1f} to "
                f"{max(cost):.1f}% of a full training's rows"
            )
    if len(texts) < 2:
        return ""
    return (
        "When 0.1% of the rows are removed, the default, a fidelity of "
        f"{DEFAULT[1]:g}, achieves a forgetting of {texts[0]}. "
        f"The paper's rule with σ = {PAPERS[1]:g} achieves {texts[1]}."
    )


def remark(results: Results) -> str:
    """The default and the paper's rule on each data set."""
    parts = []
    for name in results.all_of("data"):
        ranked, ours = _at(results, name, PAPERS), _at(results, name, DEFAULT)
        if ranked is not None and ours is not None:
            parts.append(
                f"{ours[0]:.2f} at {ours[1]:.1f}% instead of {ranked[0]:.2f} at {ranked[1]:.1f}% "
                f"({name})"
            )
    if not parts:
        return ""
    return (
        "The paper does not measure forgetting. Compared with its rule at σ = "
        f"{PAPERS[1]:g}, the default rule reaches {listed(parts)}. The rank of a split says little "
        "about what the model remembers by it. The default rule estimates what is remembered of "
        "the removed rows. It regrows nodes in the order of their regret until the estimated "
        f"fidelity reaches the target, {DEFAULT[1]:g} by default."
    )


EXPERIMENT = Experiment(
    name="frontier",
    title="Forgetting against cost",
    question=(
        "How much is forgotten about removed rows, and at what cost? Forgetting is (loss of the "
        "removed rows after the update - before) / (their loss after a refit - before). It is 0 "
        "for the untouched model and 1 for a refit."
    ),
    paper=None,
    caption=(
        "Forgetting over the rows regrown. Each point is a tolerance, or a target of the fidelity "
        "rule, with a 95% bootstrap interval over the draws. The dashed line is a refit, whose "
        "forgetting is 1 by definition; the untouched model has 0. Points further to the upper "
        "left are better."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)
