"""What defines an experiment: the cases to measure, and how their results are shown."""

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
    """One measurement, which is saved when it is done and is not repeated.

    The labels identify the case (``{"data": "adult", "split": 0}``) and are unique within an
    experiment.
    """

    labels: Mapping[str, Label]
    measure: Callable[[], Values]

    @property
    def key(self) -> str:
        """The labels on one line."""
        return key_of(self.labels)

    @property
    def plan(self) -> str:
        """The parameters of the measurement, if `measure` is a partial call."""
        arguments = getattr(self.measure, "args", ())
        plain = (str, int, float, bool, tuple, type(None))
        return repr([value for value in arguments if isinstance(value, plain)])


def key_of(labels: Mapping[str, Label]) -> str:
    """Labels on one line, as in "adult, split 0".

    Examples
    --------
    >>> key_of({"data": "adult", "split": 0, "way": "add"})
    'adult, split 0, way add'
    """
    words = [str(v) if name == "data" else f"{name} {v}" for name, v in labels.items()]
    return ", ".join(words) or "all"


def no_goals(results: Results) -> list[Goal]:
    """For experiments without goals."""
    return []


@dataclass(frozen=True)
class Experiment:
    """One table or figure, from the data to the page."""

    name: str  # on the command line, and of its files
    title: str
    question: str  # what is measured and how, in a few sentences
    paper: str | None  # the paper's table or figure, as in "Table 4"; None for our own
    caption: str  # of the picture
    cases: Callable[[Scale], Iterable[Case]]
    answer: Callable[[Results], str]  # in two sentences, at the head of the page
    tables: Callable[[Results], str]  # Markdown
    draw: Callable[[Results], Figure]
    remark: Callable[[Results], str]  # where results differ from the paper or from expectation
    goals: Callable[[Results], list[Goal]] = no_goals
