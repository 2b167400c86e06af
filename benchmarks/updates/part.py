"""What every part of a measurement has, of updates or of sparse tables, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.goal import Goal
from benchmarks.libraries import OURS, YARDSTICK, Library
from benchmarks.results import Record, Run
from benchmarks.settings import Settings


@dataclass(frozen=True)
class Plan:
    """How much is measured, and with what."""

    settings: Settings
    peers: tuple[Library, ...]  # of those that the part compares with, the ones that are there
    repeats: int  # runs of what does the same each time; the best of them counts
    say: Callable[[str], None]
    quick: bool = False
    tolerances: tuple[float, ...] = ()  # none: the default of the estimator
    draws: tuple[int, int] = (10, 3)  # of 0.1% and of 1% of the rows

    @property
    def yardstick(self) -> Library | None:
        """LightGBM, to be trained again beside the updates; None if it is not there."""
        return next((peer for peer in self.peers if peer.name == YARDSTICK), None)


@dataclass(frozen=True)
class Part:
    """One kind of measurement, from the rows to the table."""

    name: str  # as on the command line
    data: tuple[str, ...]
    quick_data: tuple[str, ...]
    measure: Callable[[str, Plan], Iterable[Record]]  # on the data set of this name
    tables: Callable[[Run], str]
    goals: Callable[[Run | None], list[Goal]]
    peers: tuple[Library, ...] = ()  # that it compares with
    command: str = "updates"  # that it is a part of

    @property
    def kind(self) -> str:
        """Kind of its runs."""
        return f"{self.command}-{self.name}"

    def names(self, wanted: Iterable[str] | None, quick: bool) -> list[str]:
        """Data sets to measure, out of those that are wanted."""
        if wanted is None:
            return list(self.quick_data if quick else self.data)
        chosen = set(wanted)
        return [name for name in self.data if name in chosen]

    def records(self, name: str, plan: Plan) -> list[Record]:
        """Measure one data set; if that raises, the record says why and the others go on."""
        try:
            return list(self.measure(name, plan))
        except Exception as error:  # a peer may raise anything
            failure = f"{type(error).__name__}: {error}"
            plan.say(f"{name}  {self.name}  failed: {failure}")
            return [Record(name, OURS, failure=failure)]

    def text(self, run: Run) -> str:
        """Tables of a run, and what failed in it."""
        failures = [f"{r.data} failed: {r.failure}." for r in run.records if r.failure]
        return "\n\n".join([self.tables(run), *failures])
