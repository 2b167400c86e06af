"""One part of a benchmark of updates or of sparse data, and the plan that it is given."""

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
    peers: tuple[Library, ...]  # libraries of the part that are installed
    repeats: int  # of identical measurements, of which the best counts
    say: Callable[[str], None]
    quick: bool = False
    fidelities: tuple[float, ...] = ()  # targets; empty: the default of the estimator
    draws: tuple[int, int] = (10, 3)  # of up to 0.1% and of 1% of the rows

    @property
    def yardstick(self) -> Library | None:
        """LightGBM, which is retrained between the updates; None if it is not installed."""
        return next((peer for peer in self.peers if peer.name == YARDSTICK), None)


@dataclass(frozen=True)
class Part:
    """One kind of measurement, from the data to the table."""

    name: str  # on the command line
    data: tuple[str, ...]
    quick_data: tuple[str, ...]
    measure: Callable[[str, Plan], Iterable[Record]]  # of the data set of this name
    tables: Callable[[Run], str]
    goals: Callable[[Run | None], list[Goal]]
    peers: tuple[Library, ...] = ()  # libraries to compare with
    command: str = "updates"  # that the part belongs to
    repeats: int = 5  # unless the command line says otherwise; less if one takes long

    @property
    def kind(self) -> str:
        """Kind of its runs."""
        return f"{self.command}-{self.name}"

    def names(self, wanted: Iterable[str] | None, quick: bool) -> list[str]:
        """Data sets to measure, among the given ones."""
        if wanted is None:
            return list(self.quick_data if quick else self.data)
        chosen = set(wanted)
        return [name for name in self.data if name in chosen]

    def records(self, name: str, plan: Plan) -> list[Record]:
        """Measure one data set; if that raises, the record states why."""
        try:
            return list(self.measure(name, plan))
        except Exception as error:  # a library may raise anything
            failure = f"{type(error).__name__}: {error}"
            plan.say(f"{name}  {self.name}  failed: {failure}")
            return [Record(name, OURS, failure=failure)]

    def text(self, run: Run) -> str:
        """Tables and failures of a run."""
        failures = [f"{r.data} failed: {r.failure}." for r in run.records if r.failure]
        return "\n\n".join([self.tables(run), *failures])
