"""What forgetting costs: both rules, from never retraining to always."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import datasets
from benchmarks.markdown import table
from benchmarks.updates.forgetting import pooled
from benchmarks.updates.timing import rows_of
from experiments.ablations.records import as_values, find, mean, records_of
from experiments.draws import Draws, Rule
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Results
from graftboost.audit.plotting import COLOURS, CONTROL, MARKERS, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.results import Record

SHARE = 0.001
TOLERANCES: dict[Scale, dict[str, tuple[float, ...]]] = {
    "quick": {"rank": (0.0, 0.1), "regret": (0.3, 1.2, 10.0)},
    "full": {
        "rank": (0.0, 0.02, 0.05, 0.1, 0.2, 0.5),
        "regret": (0.0, 0.3, 0.6, 1.2, 3.0, 10.0, 100.0),
    },
}
TITLES = {"rank": "rank, the paper's σ", "regret": "regret, the default"}

# Data sets and how often rows are drawn.
DATA: dict[Scale, dict[str, int]] = {
    "quick": {"adult": 2},
    "full": {"adult": 12, "electricity": 12, "credit_info": 8, "higgs_sample": 20},
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set."""
    for name, n_draws in DATA[scale].items():
        yield Case({"data": name}, partial(_measure, name, n_draws, TOLERANCES[scale]))


def _measure(name: str, n_draws: int, tolerances: dict[str, tuple[float, ...]]) -> Values:
    rules: dict[str, Rule] = {
        f"{rule} {tolerance:g}": {"tolerance_rule": rule, "tolerance": tolerance}
        for rule, values in tolerances.items()
        for tolerance in values
    }
    data = datasets.load(name)
    draws = Draws(data, rules=rules)
    return as_values(draws.measure("remove", rows_of(SHARE, len(data.y_train)), n_draws))


def _points(results: Results, name: str, rule: str) -> list[tuple[float, Record]]:
    """Tolerances from small to large, with what was measured under each."""
    records = records_of(results, data=name)
    tolerances = sorted(float(r.library.split()[1]) for r in records if r.library.startswith(rule))
    found = [(t, find(records, name, f"{rule} {t:g}")) for t in tolerances]
    return [(t, record) for t, record in found if record is not None]


def tables(results: Results) -> str:
    """Forgetting and what it costs, at each tolerance."""
    rows = []
    for name in results.all_of("data"):
        rows.append([name, "left alone", "-", "0", "0%", "0", "-"])
        for rule, title in TITLES.items():
            for tolerance, record in _points(results, name, rule):
                draws = len(record.samples["refits"])
                rows.append(
                    [
                        "",
                        title,
                        f"{tolerance:g}",
                        str(pooled(record)),
                        f"{100 * mean(record, 'rows_retrained'):.1f}%",
                        f"{_seconds(record):.2f}",
                        f"{sum(record.samples['refits']):.0f} of {draws}",
                    ]
                )
        rows.append(["", "trained again", "-", "1", "100%", "1", "-"])
    head = [
        "data set",
        "rule",
        "tolerance",
        "forgetting",
        "rows retrained",
        "seconds, of a refit's",
        "refits",
    ]
    return (
        "0.1% of the rows are removed. Forgetting is pooled over the draws, with a bootstrap "
        "interval of 95% over them; rows retrained are in per cent of one full training's row "
        "visits (a refit has 100); seconds are medians.\n\n" + table(head, rows)
    )


def _seconds(record: Record) -> float:
    update, refit = record.median("update_seconds"), record.median("refit_seconds")
    return update / refit if update and refit else math.nan


def draw(results: Results) -> Figure:
    """Forgetting over the rows retrained, one line for each rule."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=2, size=(4.8, 3.2))
    for i, (axis, name) in enumerate(zip(axes, names, strict=True)):
        for (rule, title), colour, marker in zip(TITLES.items(), COLOURS, MARKERS, strict=False):
            points = _points(results, name, rule)
            x = [max(100 * mean(record, "rows_retrained"), 0.01) for _, record in points]
            y = [pooled(record).value or math.nan for _, record in points]
            axis.plot(x, y, color=colour, marker=marker, markersize=4, label=title)
            for (tolerance, _), at_x, at_y in zip(points, x, y, strict=True):
                axis.annotate(
                    f"{tolerance:g}",
                    (at_x, at_y),
                    xytext=(0, 5 if rule == "regret" else -11),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                    color=colour,
                )
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.axhline(1, **CONTROL)
        axis.set_ylim(0, 1.12 * axis.get_ylim()[1])
        axis.set_title(name)
        axis.set_xlabel("rows retrained, per cent of a full training's")
        if i % 2 == 0:
            axis.set_ylabel("forgetting")
    legend(figure)
    return figure


def remark(results: Results) -> str:
    """What the default forgets for what the paper's rule costs."""
    words = []
    for name in results.all_of("data"):
        ranked = dict(_points(results, name, "rank")).get(0.1)
        ours = dict(_points(results, name, "regret")).get(1.2)
        if ranked is not None and ours is not None:
            words.append(
                f"{name} {pooled(ranked).value or 0:.2f} at "
                f"{100 * mean(ranked, 'rows_retrained'):.1f}% against "
                f"{pooled(ours).value or 0:.2f} at {100 * mean(ours, 'rows_retrained'):.1f}%"
            )
    return (
        "The paper does not measure forgetting. Under its rule with σ = 0.1 and under our default: "
        + "; ".join(words)
        + ". A split's rank says little about what keeping it costs; our rule retrains nodes that "
        "few rows reach, which are cheap and where single rows are remembered. Points further up "
        "and left are better."
    )


EXPERIMENT = Experiment(
    name="frontier",
    title="Forgetting against cost",
    question=(
        "How much of the removed rows is forgotten, and what does it cost? Forgetting is (loss of "
        "the removed rows after the update - before) / (their loss after a full retrain - before): "
        "a model left alone has 0, one trained again 1."
    ),
    paper=None,
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)
