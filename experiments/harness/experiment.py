"""What every experiment has: cases to measure, and how their results are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.goal import Goal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.harness.results import Results

Scale = Literal["quick", "full"]
SCALES: tuple[Scale, ...] = ("quick", "full")

Label = str | int | float
Values = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True)
class Case:
    """One measurement, which is saved when it is done and not made twice.

    The labels say which it is (``{"data": "adult", "split": 0}``); no two cases of an experiment
    have the same.
    """

    labels: Mapping[str, Label]
    measure: Callable[[], Values]

    @property
    def key(self) -> str:
        """The labels in one line."""
        return key_of(self.labels)

    @property
    def plan(self) -> str:
        """The figures that it is measured with, where `measure` is a partial call."""
        arguments = getattr(self.measure, "args", ())
        plain = (str, int, float, bool, tuple, type(None))
        return repr([value for value in arguments if isinstance(value, plain)])


def key_of(labels: Mapping[str, Label]) -> str:
    """Labels in one line, as in "adult, split 0".

    Examples
    --------
    >>> key_of({"data": "adult", "split": 0, "way": "add"})
    'adult, split 0, way add'
    """
    words = [str(v) if name == "data" else f"{name} {v}" for name, v in labels.items()]
    return ", ".join(words) or "all"


def no_goals(results: Results) -> list[Goal]:
    """For experiments that show and do not judge."""
    return []


@dataclass(frozen=True)
class Experiment:
    """One table or figure, from the data to the page."""

    name: str  # on the command line, and of its files
    title: str
    question: str  # what is asked and how it is answered, in a few sentences for the page
    paper: str | None  # the paper's table or figure, as in "Table 4"; None for one of ours
    cases: Callable[[Scale], Iterable[Case]]
    tables: Callable[[Results], str]  # Markdown
    draw: Callable[[Results], Figure]
    remark: Callable[[Results], str]  # where it differs from the paper or from what one expects
    goals: Callable[[Results], list[Goal]] = no_goals
