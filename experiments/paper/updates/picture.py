"""Seconds over the size of D', one panel for each data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.harness.contenders import CONTENDERS
from experiments.harness.data_sets import starred
from experiments.harness.draws import SIZES, Way
from experiments.harness.results import Results
from experiments.paper.updates.tables import OURS, seconds_of
from graftboost.audit.plotting import legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = (OURS, "paper", "sisa", "lightgbm-refit")  # and the retrain: five series
RETRAINED = "lightgbm"


def draw(results: Results) -> Figure:
    """Removals by our rule and the paper's, SISA, LightGBM's refit and its retrain."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=4)
    for axis, name in zip(axes, names, strict=True):
        series = {
            CONTENDERS[who].title.replace("`", ""): _seconds(results, name, who, "remove")
            for who in (*SHOWN, RETRAINED)
        }
        lines(axis, list(SIZES), series, controls=[CONTENDERS[RETRAINED].title])
        logarithmic(axis)
        axis.set_title(starred(name))
        axis.set_xlabel("rows removed")
        axis.set_ylabel("seconds")
    legend(figure)
    return figure


def _seconds(results: Results, name: str, who: str, way: Way) -> list[float]:
    found = (seconds_of(results, name, who, way, size) for size in SIZES)
    return [float("nan") if seconds is None else seconds for seconds in found]
