"""Pictures of updates: one column for removed rows, one for added; a line for each data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.results import Record
from experiments.harness.draws import WAYS
from experiments.harness.experiment import Label
from experiments.harness.records import find, mean, mostly_refitted, names_in, ratio
from graftboost.audit.plotting import COLOURS, CONTROL, MARKERS, legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (4.6, 2.5)


@dataclass(frozen=True)
class Measure:
    """The measure that one row of panels shows."""

    title: str
    value: Callable[[Record], float | None]
    log: bool = False
    levels: tuple[float, ...] = ()  # at which a dashed line is drawn


def draw_both_ways(
    records: Sequence[Record],
    label: str,
    columns: Mapping[str, Label],
    measures: Sequence[Measure],
    x_label: str,
    rule: str = "graftboost",
) -> Figure:
    """Draw each measure over the values of a label, under one rule."""
    figure, axes = panels(2 * len(measures), columns=2, size=SIZE)
    for i, axis in enumerate(axes):
        way, measure = WAYS[i % 2], measures[i // 2]
        series = {}
        for name in names_in(records):
            found = [find(records, name, rule, way=way, **{label: v}) for v in columns.values()]
            values = [None if record is None else measure.value(record) for record in found]
            series[name] = [math.nan if value is None else value for value in values]
        lines(axis, list(columns), series)
        axis.set_xlim(-0.3, len(columns) - 0.7)  # even if the first or last value is missing
        for level in measure.levels:
            axis.axhline(level, zorder=0, **CONTROL)
        if measure.log:
            logarithmic(axis)
        if i < 2:
            axis.set_title("rows removed" if way == "remove" else "rows added")
        if i % 2 == 0:
            axis.set_ylabel(measure.title)
        if i >= 2 * len(measures) - 2:
            axis.set_xlabel(x_label)
    legend(figure, columns=6)
    return figure


def points(axis: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """Draw one point per group and series.

    Unlike bars, points can stand on a logarithmic axis, which has no 0 to start from.
    """
    width = 0.6 / max(1, len(series))
    for i, ((name, values), colour, marker) in enumerate(
        zip(series.items(), COLOURS, MARKERS, strict=False)
    ):
        places = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        axis.plot(places, values, linestyle="", color=colour, marker=marker, label=name)
    axis.set_xticks(range(len(groups)), list(groups))
    axis.set_xlim(-0.5, max(1, len(groups)) - 0.5)
    for edge in range(1, len(groups)):
        axis.axvline(edge - 0.5, color="#e6e6e6", linewidth=0.8, zorder=0)


def seconds(record: Record) -> float | None:
    """Median seconds of an update."""
    return record.median("update_seconds")


def to_refit(record: Record) -> float | None:
    """Median seconds of an update divided by those of a refit."""
    update, refit = record.median("update_seconds"), record.median("refit_seconds")
    return update / refit if update is not None and refit else None


def nodes(record: Record) -> float | None:
    """Median of the nodes regrown; None after a refit, and for 0, which has no logarithm."""
    return None if mostly_refitted(record) else record.median("nodes_regrown") or None


def above(record: Record, error: str = "error_updated") -> float:
    """Test error of a model minus that of the refitted model, in percentage points."""
    return 100 * (mean(record, error) - mean(record, "error_refitted"))


SECONDS = Measure("seconds", seconds, log=True)
TO_REFIT = Measure("seconds relative\nto a refit", to_refit, log=True, levels=(1.0,))
NODES = Measure("nodes regrown", nodes, log=True)
ABOVE = Measure("test error minus that\nof a refit, points", above, levels=(0.0,))
RATIO = Measure("forgetting or learning", ratio, levels=(0.0, 1.0))
