"""The measurements of a run, its machine and command, and how they are stored."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.json_lines import to_json
from benchmarks.libraries import Library
from benchmarks.settings import Settings


@dataclass
class Record:
    """Measurements of one library on one data set, in one of several cases.

    For most measures ("fit_seconds", "log_loss", ...) less is better, so the best is the least.
    """

    data: str
    library: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    failure: str | None = None
    case: dict[str, str | float] = field(default_factory=dict)  # {"share": 0.001, ...}

    def add(self, measure: str, value: float) -> None:
        """Add a value."""
        self.samples.setdefault(measure, []).append(value)

    def best(self, measure: str) -> float | None:
        """Least value, None if there is none."""
        return min(self.samples.get(measure, []), default=None)

    def median(self, measure: str) -> float | None:
        """Median of the values, None if there is none."""
        values = self.samples.get(measure)
        return statistics.median(values) if values else None


@dataclass
class Run:
    """All records of one command, and its circumstances."""

    # a command of `python -m benchmarks`, or "updates-" or "sparse-" and a part's name
    kind: str
    command: str
    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    settings: Settings
    repeats: int
    records: list[Record] = field(default_factory=list)
    commit: str = ""  # of the code that was measured; empty if unknown

    @property
    def name(self) -> str:
        """Name of its file, and of its section in the documentation."""
        return f"{self.kind}-threads-{self.settings.threads}" if self.kind == "fit" else self.kind

    def data_names(self) -> list[str]:
        """Data sets in the order they were measured."""
        return list(dict.fromkeys(record.data for record in self.records))

    def find(self, data: str, library: str, **case: str | float) -> Record | None:
        """First record of a library on a data set whose case has these values."""
        for record in self.records:
            if (record.data, record.library) == (data, library) and case.items() <= (
                record.case.items()
            ):
                return record
        return None

    def best(self, data: str, library: str, measure: str) -> float | None:
        """Best value of a measure, None if it was not measured."""
        record = self.find(data, library)
        return record.best(measure) if record else None

    def ratio(self, data: str, library: str, measure: str, yardstick: str) -> float | None:
        """Best value relative to the yardstick's, None if one of them is missing."""
        ours = self.best(data, library, measure)
        theirs = self.best(data, yardstick, measure)
        return ours / theirs if ours is not None and theirs else None

    def is_continued_by(self, other: Run) -> bool:
        """Whether another run is of the same code and command, on the same machine."""
        return bool(self.commit) and all(
            getattr(self, what) == getattr(other, what)
            for what in ("kind", "command", "commit", "machine", "versions")
        )

    def save(self, folder: Path) -> Path:
        """Write the run as JSON; an earlier run of the same name is replaced atomically."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        unfinished = path.with_suffix(".json.part")
        unfinished.write_text(to_json(asdict(self)) + "\n")
        unfinished.replace(path)
        return path


def new_run(
    kind: str, command: str, libraries: Sequence[Library], settings: Settings, repeats: int
) -> Run:
    """An empty run, with this machine and the current date."""
    return Run(
        kind=kind,
        command=command,
        date=datetime.date.today().isoformat(),
        machine=this_machine(),
        versions={library.title: library.version() for library in libraries},
        settings=settings,
        repeats=repeats,
        commit=this_commit(),
    )


def load_runs(folder: Path) -> dict[str, Run]:
    """All runs saved in a folder, by name."""
    runs = [_from_json(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
    return {run.name: run for run in runs}


def _from_json(stored: dict[str, Any]) -> Run:
    return Run(
        **{
            **stored,
            "settings": Settings(**stored["settings"]),
            "records": [Record(**record) for record in stored["records"]],
        }
    )


def this_commit() -> str:
    """The last commit that changed the package; empty if there is none or files differ from it."""
    if shutil.which("git") is None:
        return ""
    sources = ("--", "engine", "src", "CMakeLists.txt", "pyproject.toml")

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent.parent), *arguments, *sources]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return "" if git("status", "--porcelain") else git("log", "-1", "--format=%h")


def this_machine() -> dict[str, str]:
    """Processor, cores, memory and system, as far as they are known."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = {
        "processor": _processor(),
        "cores": str(cores),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        machine["memory"] = f"{memory / 1e9:.0f} GB"
    return machine


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
