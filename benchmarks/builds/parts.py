"""The parts of the comparison, by their names on the command line, and their data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.builds import memory, speed
from benchmarks.builds.build import Build
from benchmarks.builds.models import compare_models
from benchmarks.memory import available
from benchmarks.updates.part import Plan

PARTS = ("models", "speed", "memory")
DATA: dict[str, Sequence[str]] = {"models": (), "speed": speed.DATA, "memory": memory.DATA}
QUICK_DATA = {**DATA, "speed": speed.QUICK_DATA, "memory": memory.QUICK_DATA}


def compare(old: Path, new: Path, names: Mapping[str, Sequence[str]], plan: Plan) -> Iterator[str]:
    """Compare the builds in two folders; yields the text of each part.

    Parameters
    ----------
    old, new : Path
        Folders into which the package was installed.
    names : Mapping of str to Sequence of str
        The wanted parts, each with its data sets.
    plan : Plan
        Settings, number of repeats, and whether to draw fewer rows.

    Raises
    ------
    BuildError
        If a folder does not contain a build.
    """
    builds = Build("old", old), Build("new", new)
    for build in builds:
        build.check()
    if "models" in names:
        yield compare_models(builds, plan.say)
    if "speed" in names:
        yield speed.compare_speed(builds, names["speed"], plan)
    if "memory" in names:
        if available():
            yield memory.compare_memory(builds, names["memory"], plan)
        else:
            plan.say("skipping memory: this system does not report the peak memory of a process")
