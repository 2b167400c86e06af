"""The result of an audit, which can be printed and plotted."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from graftboost.audit import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = str | int | float | None


@dataclass(frozen=True)
class Chart:
    """The content of an audit's plot.

    Attributes
    ----------
    kind : {"bars", "lines"}
        The type of the plot.
    x : sequence
        Groups of bars, or positions of points.
    series : mapping of str to sequence of float
        Values by name.
    x_label, y_label : str
        Labels of the axes.
    bands : mapping of str to pair of sequences
        Lower and upper bounds of a band around a line.
    """

    kind: Literal["bars", "lines"]
    x: Sequence[Any]
    series: Mapping[str, Sequence[float]]
    x_label: str = ""
    y_label: str = ""
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)

    def draw(self, axis: Axes) -> None:
        """Draw the chart on these axes."""
        if self.kind == "lines":
            plotting.lines(axis, self.x, self.series, bands=self.bands)
        else:
            plotting.bars(axis, [str(group) for group in self.x], self.series)
        axis.set_xlabel(self.x_label)
        axis.set_ylabel(self.y_label)
        if len(self.series) > 1:
            low, high = axis.get_ylim()
            axis.set_ylim(low, high + 0.25 * (high - low))  # space for the legend
            axis.legend(loc="upper center", ncols=3, fontsize=8, frameon=False)


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Print it for a table and a summary, or call `plot`.

    Attributes
    ----------
    name : str
        The function that made the audit.
    title : str
        What was audited.
    columns : tuple of str
        Column headings of the table.
    rows : tuple of tuple
        The rows of the table; None is an empty cell.
    summary : str
        The result in words.
    figures : mapping of str to Any
        The measurements by name, as values that JSON supports.
    chart : Chart or None
        The content of its plot.
    parts : tuple of Audit
        The individual audits, if there are several.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    summary: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    chart: Chart | None = None
    parts: tuple[Audit, ...] = ()

    def __str__(self) -> str:
        cells = [list(self.columns), *([_write(cell) for cell in row] for row in self.rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(self.columns))]
        lines = [
            "  " + "  ".join(_align(cell, width, i) for i, (cell, width) in _pairs(line, widths))
            for line in cells
        ]
        lines.insert(1, "  " + "  ".join("-" * width for width in widths))
        text = "\n".join([self.title, *(line.rstrip() for line in lines), self.summary])
        return "\n\n".join([text, *(str(part) for part in self.parts)])

    def to_markdown(self) -> str:
        """Return title, table and summary in Markdown."""
        lines = [
            list(self.columns),
            ["---"] * len(self.columns),
            *([_write(cell) for cell in row] for row in self.rows),
        ]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        text = f"**{self.title}**\n\n{table}\n\n{self.summary}"
        return "\n\n".join([text, *(part.to_markdown() for part in self.parts)])

    _repr_markdown_ = to_markdown

    def plot(self, ax: Axes | None = None) -> Axes | list[Axes]:
        """Plot the audit with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes. Default: a new figure, with one panel per part.

        Returns
        -------
        Axes or list of Axes
            The axes of the plot; a list if there are several parts. ``.figure.savefig(...)``
            saves the plot.

        Raises
        ------
        ValueError
            If there is nothing to plot, or `ax` is given for an audit with several plots.
        """
        drawn = [audit for audit in (self, *self.parts) if audit.chart is not None]
        if not drawn:
            raise ValueError(f"The audit {self.name!r} has no plot. Print it instead.")
        if ax is not None:
            if len(drawn) > 1:
                raise ValueError(
                    f"ax is given, but the audit {self.name!r} has {len(drawn)} plots. "
                    "Omit ax, or plot one of its parts."
                )
            drawn[0]._draw_on(ax)
            return ax
        _, axes = plotting.panels(len(drawn), columns=2, size=(4.6, 3.2))
        for audit, axis in zip(drawn, axes, strict=True):
            audit._draw_on(axis)
        return axes if len(axes) > 1 else axes[0]

    def _draw_on(self, axis: Axes) -> None:
        assert self.chart is not None
        axis.set_title(textwrap.fill(self.title, 48), fontsize=10)
        self.chart.draw(axis)


def _pairs(line: list[str], widths: list[int]) -> list[tuple[int, tuple[str, int]]]:
    return list(enumerate(zip(line, widths, strict=True)))


def _align(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _write(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def percent(share: float) -> str:
    """Return a fraction in per cent, such as "98.8%"."""
    if share in (0, 1):
        return f"{100 * share:.0f}%"
    return f"{100 * share:.1f}%" if 0.0005 <= share < 0.9995 else f"{100 * share:.3f}%"
