"""The measurements of an experiment, the machine they come from, and how they are stored."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.json_lines import to_json
from benchmarks.libraries import LIBRARIES
from benchmarks.results import this_commit, this_machine
from experiments.harness.experiment import Case, Label, Scale, Values, key_of


@dataclass
class Done:
    """A case that was measured, or the reason why it was not.

    There are no values if the case failed (``failure``) or if its data is ``missing``.
    """

    labels: dict[str, Label]
    values: Values
    seconds: float
    failure: str | None = None
    missing: str | None = None
    date: str = ""
    plan: str = ""  # parameters of the measurement, as far as they are known
    commit: str = ""  # of the package that was measured; empty if unknown

    @property
    def measured(self) -> bool:
        """Whether there are values."""
        return self.failure is None and self.missing is None


@dataclass
class Results:
    """All measurements of one experiment, case by case."""

    experiment: str
    scale: Scale
    date: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    cases: list[Done] = field(default_factory=list)
    commit: str = ""  # of the package as it is now; empty if unknown

    def __contains__(self, case: Case) -> bool:
        """Whether the case was measured with its current parameters."""
        return self._found(case) is not None

    def is_current(self, case: Case) -> bool:
        """Whether the case was also measured with the package as it is now."""
        done = self._found(case)
        return done is not None and bool(self.commit) and done.commit == self.commit

    def _found(self, case: Case) -> Done | None:
        for done in self.cases:
            same = key_of(done.labels) == case.key and done.plan in ("", case.plan)
            if same and done.measured:
                return done
        return None

    def where(self, **labels: Label) -> Iterator[Done]:
        """Cases with these labels that were measured, in order."""
        for done in self.cases:
            if done.measured and labels.items() <= done.labels.items():
                yield done

    def find(self, **labels: Label) -> Values | None:
        """Values of the first case with these labels, None if there is none."""
        return next((done.values for done in self.where(**labels)), None)

    def all_of(self, label: str, **labels: Label) -> list[Any]:
        """Distinct values of a label among the cases with the other labels."""
        found = (done.labels[label] for done in self.where(**labels) if label in done.labels)
        return list(dict.fromkeys(found))

    def failures(self) -> list[str]:
        """The cases that failed, and why."""
        return [f"{key_of(d.labels)}: {d.failure}" for d in self.cases if d.failure]

    def skipped(self) -> list[str]:
        """Libraries that are not installed, and data that is missing."""
        peers = [name for done in self.where() for name in done.values.get("skipped", [])]
        data = [f"{key_of(d.labels)}: {d.missing}" for d in self.cases if d.missing]
        return list(dict.fromkeys([*peers, *data]))

    def dates(self) -> str:
        """When the cases were measured."""
        dates = sorted({done.date or self.date for done in self.cases}) or [self.date]
        return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"

    def commits(self) -> str:
        """Commits of the package that were measured, in words; empty if none is known."""
        known = list(dict.fromkeys(done.commit for done in self.cases))
        if not any(known):
            return ""
        words = ", ".join(commit or "unknown" for commit in known)
        return f"commit {words}" if len(known) == 1 else f"commits {words}"

    def seconds(self) -> float:
        """Seconds that all cases took."""
        return sum(done.seconds for done in self.cases)

    def add(self, done: Done) -> None:
        """Add a case, in place of an earlier one with the same labels."""
        key = key_of(done.labels)
        self.cases = [other for other in self.cases if key_of(other.labels) != key] + [done]

    def in_order_of(self, cases: list[Case]) -> None:
        """Sort the cases into this order and drop all others."""
        by_key = {key_of(done.labels): done for done in self.cases}
        self.cases = [by_key[case.key] for case in cases if case.key in by_key]

    def save(self, folder: Path) -> None:
        """Write the results as JSON; an existing file is replaced atomically."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}.json"
        unfinished = path.with_suffix(".json.part")
        unfinished.write_text(to_json(asdict(self)) + "\n")
        unfinished.replace(path)


def new_results(experiment: str, scale: Scale) -> Results:
    """Empty results, with this machine, the current date and commit."""
    versions = {}
    for library in LIBRARIES.values():
        if (version := library.version()) != "unknown":
            versions[library.title] = version
    for distribution in ("river",):
        try:
            versions[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Results(experiment, scale, today(), this_machine(), versions, commit=this_commit())


def today() -> str:
    """The date."""
    return datetime.date.today().isoformat()


def load_results(folder: Path, experiment: str) -> Results | None:
    """Read the results of an experiment from a folder, None if there are none."""
    path = folder / f"{experiment}.json"
    if not path.is_file():
        return None
    stored = json.loads(path.read_text())
    return Results(**{**stored, "cases": [Done(**case) for case in stored["cases"]]})
