"""Seconds over the size of D', data set by data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.contenders import CONTENDERS
from experiments.data_sets import starred
from experiments.draws import SIZES, Way
from experiments.results import Results
from experiments.updates.tables import OURS, seconds_of
from graftboost.audit.plotting import legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REMOVING = ("paper", "predecessor", "sisa", "lightgbm-refit", "xgboost-refresh")
RETRAINED = "lightgbm"


def draw(results: Results) -> Figure:
    """Removals; of graftboost the additions too."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=4)
    for axis, name in zip(axes, names, strict=True):
        series = {
            "graftboost, removing": _seconds(results, name, OURS, "remove"),
            "graftboost, adding": _seconds(results, name, OURS, "add"),
        }
        for who in (*REMOVING, RETRAINED):
            title = CONTENDERS[who].title.replace("`", "")
            series[title] = _seconds(results, name, who, "remove")
        lines(axis, list(SIZES), series, controls=[CONTENDERS[RETRAINED].title])
        logarithmic(axis)
        axis.set_title(starred(name))
        axis.set_xlabel("rows that go or come")
        axis.set_ylabel("seconds")
    legend(figure)
    return figure


def _seconds(results: Results, name: str, who: str, way: Way) -> list[float]:
    found = (seconds_of(results, name, who, way, size) for size in SIZES)
    return [float("nan") if seconds is None else seconds for seconds in found]
