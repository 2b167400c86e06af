"""Plots in a common style: lines and bars in small panels, readable without colour."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which colour-blind readers can distinguish. Lines also differ in
# their markers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c8c")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# The style of control lines in all plots.
CONTROL: dict[str, Any] = {"color": "#8c8c8c", "linestyle": "--", "marker": "", "linewidth": 1.2}

PANEL = (3.6, 2.7)  # inches
LETTERS = 13  # of axis labels per inch


def panels(
    n: int, *, columns: int = 3, size: tuple[float, float] = PANEL
) -> tuple[Figure, list[Axes]]:
    """Make a figure with n panels, arranged in rows.

    Parameters
    ----------
    n : int
        Number of panels.
    columns : int, default=3
        Maximal number of panels per row.
    size : tuple of float, default=(3.6, 2.7)
        Width and height of a panel, in inches.

    Returns
    -------
    Figure
        The figure. It has no window and need not be closed.
    list of Axes
        Its panels.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure as NewFigure
    except ImportError as error:
        raise ImportError(
            "Plots require matplotlib. Install it with: pip install graftboost[plot]"
        ) from error
    columns = min(columns, max(1, n))
    rows = math.ceil(max(1, n) / columns)
    figure = NewFigure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in axes[n:]:
        unused.remove()
    for axis in axes[:n]:
        plain(axis)
    return figure, axes[:n]


def plain(axis: Axes) -> None:
    """Remove the upper and right border, and add a light grid."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, axis="y", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(which="both", labelsize=8)  # logarithmic axes label minor ticks too
    axis.title.set_fontsize(10)
    axis.xaxis.label.set_fontsize(9)
    axis.yaxis.label.set_fontsize(9)


def lines(
    axis: Axes,
    x: Sequence[Any],
    series: Mapping[str, Sequence[float]],
    *,
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    controls: Sequence[str] = (),
) -> None:
    """Draw several lines over the same x.

    Parameters
    ----------
    axis : Axes
        The axes.
    x : sequence
        Positions on the x axis; text is placed at equal distances.
    series : mapping of str to sequence of float
        Values of each line, by its name in the legend; NaN leaves a gap.
    bands : mapping of str to pair of sequences, default=None
        Lower and upper bounds of a band around a line.
    controls : sequence of str, default=()
        Names of control lines, which are grey and dashed.
    """
    words = any(isinstance(value, str) for value in x)
    positions = list(range(len(x))) if words else list(x)
    looks = itertools.cycle(zip(COLOURS, MARKERS, strict=True))
    for name, values in series.items():
        if name in controls:
            axis.plot(positions, values, label=name, **CONTROL)
            continue
        colour, marker = next(looks)
        axis.plot(positions, values, label=name, color=colour, marker=marker, markersize=4)
        if bands and name in bands:
            low, high = bands[name]
            axis.fill_between(positions, low, high, color=colour, alpha=0.18, linewidth=0)
    if words:
        axis.set_xticks(positions, [str(value) for value in x])


def bars(axis: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """Draw groups of bars, one bar in each group for every series.

    Parameters
    ----------
    axis : Axes
        The axes.
    groups : sequence of str
        Names of the groups.
    series : mapping of str to sequence of float
        Heights in each group, by name in the legend; NaN leaves a bar out.
    """
    width = 0.8 / max(1, len(series))
    for i, (name, values) in enumerate(series.items()):
        positions = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        axis.bar(positions, values, width=0.92 * width, label=name, color=COLOURS[i % len(COLOURS)])
    longest = max((len(group) for group in groups), default=0) + 1
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    fits = longest * len(groups) <= LETTERS * _width(axis)
    axis.set_xticks(range(len(groups)), list(groups), **({} if fits else turned))


def _width(axis: Axes) -> float:
    """Return the width of a panel in inches."""
    figure = axis.get_figure(root=True)
    return axis.get_position().width * figure.get_figwidth() if figure is not None else PANEL[0]


def logarithmic(axis: Axes, *, x: bool = False) -> None:
    """Make the y axis logarithmic, with plain numbers as labels.

    Call this after drawing, because the number of labels depends on the range of values.

    Parameters
    ----------
    axis : Axes
        The axes.
    x : bool, default=False
        Whether the x axis is made logarithmic as well.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    drawn: list[tuple[XAxis | YAxis, float]] = [(axis.yaxis, axis.dataLim.minposy)]
    if x:
        drawn.append((axis.xaxis, axis.dataLim.minposx))
    for scale, least in drawn:
        if not math.isfinite(least):
            continue  # there are no positive values
        (axis.set_yscale if scale is axis.yaxis else axis.set_xscale)("log")
        low, high = scale.get_view_interval()
        decades = math.log10(high / low)
        steps = range(1, 10) if decades < 0.6 else (1, 2, 5) if decades < 2 else (1,)
        scale.set_major_locator(LogLocator(subs=tuple(steps)))
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        scale.set_minor_formatter(NullFormatter())


def legend(figure: Figure, *, columns: int = 4) -> None:
    """Add one legend below all panels; a name used in several panels appears once."""
    found: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        figure.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=min(columns, len(found)),
            fontsize=8,
            frameon=False,
        )
