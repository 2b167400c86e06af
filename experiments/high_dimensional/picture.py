"""Seconds and memory of fits above, milliseconds of updates below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.libraries import LIBRARIES
from experiments.draws import SIZES, WAYS
from experiments.high_dimensional.measuring import SETS, TRAINING, UPDATING, WHO
from experiments.high_dimensional.tables import best, measured, milliseconds_a_tree, sample_of
from experiments.results import Results
from graftboost.audit.plotting import bars, legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FITS = {
    "fit_seconds": ("Seconds of a fit", 1.0),
    "process_bytes": ("Megabytes of the process", 1e-6),
}
DOING = {"add": "adding", "remove": "removing"}


def draw(results: Results) -> Figure:
    """A panel for the seconds, one for the memory, and one for the updates."""
    figure, axes = panels(3, columns=3, size=(4.4, 3.0))
    training = measured(results, TRAINING)
    groups = [SETS[name].title for name in training]
    for axis, (what, (title, unit)) in zip(axes, FITS.items(), strict=False):
        series = {
            LIBRARIES[who].title: [
                math.nan if (found := best(values, who, what)) is None else unit * found
                for values in training.values()
            ]
            for who in WHO
        }
        bars(axis, groups, series)
        axis.set_title(title)
        logarithmic(axis)
    updates = {
        f"{SETS[name].title}, {DOING[way]}": [
            math.nan
            if (sample := sample_of(values, way, size)) is None
            else milliseconds_a_tree(values, sample)
            for size in SIZES
        ]
        for name, values in measured(results, UPDATING).items()
        for way in WAYS
    }
    lines(axes[2], list(SIZES), updates)
    logarithmic(axes[2])
    axes[2].set_title("Updates of graftboost")
    axes[2].set_xlabel("rows that go or come")
    axes[2].set_ylabel("milliseconds a tree")
    legend(figure, columns=5)
    return figure
