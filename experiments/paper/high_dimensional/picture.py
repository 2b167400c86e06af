"""Seconds and memory of fits by library, and milliseconds of updates by data set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.libraries import LIBRARIES
from experiments.harness.draws import SIZES, WAYS, Way
from experiments.harness.pictures import points
from experiments.harness.results import Results
from experiments.paper.high_dimensional.measuring import SETS, TRAINING, UPDATING, WHO
from experiments.paper.high_dimensional.tables import best, measured, milliseconds_a_tree, sample_of
from graftboost.audit.plotting import COLOURS, MARKERS, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FITS = {
    "fit_seconds": ("Seconds of a fit", 1.0),
    "process_bytes": ("Peak memory of the process, megabytes", 1e-6),
}
DOING = {"add": "Rows added", "remove": "Rows removed"}


# Data sets have colours and markers of their own: those of the upper panels are libraries.
SET_LOOKS = list(zip(COLOURS[len(WHO) :], MARKERS[len(WHO) :], strict=True))


def draw(results: Results) -> Figure:
    """Fits by library above, with their legend; updates by data set below, with theirs."""
    figure, axes = panels(4, columns=2, size=(4.8, 3.0))
    training = measured(results, TRAINING)
    groups = [SETS[name].title for name in training]
    for axis, (what, (title, unit)) in zip(axes, FITS.items(), strict=False):
        series = {
            LIBRARIES[who].title: [
                math.nan if (found := best(values, who, what)) is None else unit * found
                for values in training.values()
            ]
            for who in LIBRARIES
            if who in WHO
        }
        points(axis, groups, series)
        axis.set_title(title)
        logarithmic(axis)
    if training:
        axes[0].legend(fontsize=7, frameon=False)
    for axis, way in zip(axes[2:], WAYS, strict=True):
        _draw_updates(axis, results, way)
    if axes[2].lines:
        axes[2].legend(fontsize=7, frameon=False)
    return figure


def _draw_updates(axis: Axes, results: Results, way: Way) -> None:
    series = {
        SETS[name].title: [
            math.nan
            if (sample := sample_of(values, way, size)) is None
            else milliseconds_a_tree(values, sample)
            for size in SIZES
        ]
        for name, values in measured(results, UPDATING).items()
    }
    lines(axis, list(SIZES), series)
    for line, (colour, marker) in zip(axis.lines, SET_LOOKS, strict=False):
        line.set(color=colour, marker=marker)
    logarithmic(axis)
    axis.set_title(f"{DOING[way]}, graftboost")
    axis.set_xlabel("rows of the update")
    axis.set_ylabel("milliseconds per tree")
