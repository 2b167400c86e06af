"""The picture of estimated and measured memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.harness.results import Results
from graftboost.audit.plotting import COLOURS, CONTROL, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINEAR = 0.01  # memory below this is drawn on a linear scale


def draw(results: Results) -> Figure:
    """Measured over estimated memory, one panel for each data set."""
    names = results.all_of("data", way="remove", size="0.1%")
    figure, axes = panels(len(names), columns=4, size=(2.6, 2.3))
    for axis, name in zip(axes, names, strict=True):
        values = results.find(data=name, way="remove", size="0.1%")
        groups = [] if values is None else values["groups"]
        estimate, change = ([group[i] for group in groups] for i in (0, 1))
        largest = max([LINEAR, *estimate, *change])
        axis.plot([0, largest], [0, largest], label="estimate = change", **CONTROL)
        axis.plot(
            estimate,
            change,
            color=COLOURS[0],
            marker="o",
            markersize=3.5,
            linewidth=0,
            label="tenth of the removed rows",
        )
        for set_scale in (axis.set_xscale, axis.set_yscale):
            set_scale("symlog", linthresh=LINEAR)
        ticks = [0, *(tick for tick in (0.01, 0.1, 1) if tick <= 1.5 * largest)]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_title(name)
        axis.set_xlabel("estimated memory")
        axis.set_ylabel("change by a refit")
    legend(figure)
    return figure
