"""Pictures of draws: a column for rows removed and one for rows added, a line for each data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.results import Record
from experiments.ablations.records import find, mean, mostly_refitted, names_in, ratio
from experiments.draws import WAYS
from experiments.experiment import Label
from graftboost.audit.plotting import CONTROL, legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (4.6, 2.5)


@dataclass(frozen=True)
class Measure:
    """What one row of panels shows."""

    title: str
    value: Callable[[Record], float | None]
    log: bool = False
    levels: tuple[float, ...] = ()  # where a dashed line runs across


def draw_both_ways(
    records: Sequence[Record],
    label: str,
    columns: Mapping[str, Label],
    measures: Sequence[Measure],
    x_label: str,
    rule: str = "graftboost",
) -> Figure:
    """Draw each measure over the values of a case's label, under one rule."""
    figure, axes = panels(2 * len(measures), columns=2, size=SIZE)
    for i, axis in enumerate(axes):
        way, measure = WAYS[i % 2], measures[i // 2]
        series = {}
        for name in names_in(records):
            found = [find(records, name, rule, way=way, **{label: v}) for v in columns.values()]
            values = [None if record is None else measure.value(record) for record in found]
            series[name] = [math.nan if value is None else value for value in values]
        lines(axis, list(columns), series)
        axis.set_xlim(-0.3, len(columns) - 0.7)  # also where the ends are gaps
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


def seconds(record: Record) -> float | None:
    """Median seconds of an update."""
    return record.median("update_seconds")


def to_refit(record: Record) -> float | None:
    """Median seconds of an update over those of a refit."""
    update, refit = record.median("update_seconds"), record.median("refit_seconds")
    return update / refit if update is not None and refit else None


def nodes(record: Record) -> float | None:
    """Median of the nodes retrained; none after a refit, nor where an axis of powers has no 0."""
    return None if mostly_refitted(record) else record.median("nodes_retrained") or None


def above(record: Record, error: str = "error_updated") -> float:
    """Test error of a model above that of the retrained one, in points."""
    return 100 * (mean(record, error) - mean(record, "error_refitted"))


SECONDS = Measure("seconds", seconds, log=True)
TO_REFIT = Measure("seconds, as a share\nof a refit's", to_refit, log=True, levels=(1.0,))
NODES = Measure("nodes retrained", nodes, log=True)
ABOVE = Measure("test error above a\nrefit's, points", above, levels=(0.0,))
RATIO = Measure("forgetting or learning", ratio, levels=(0.0, 1.0))
