"""Peak memory of a fit in both builds, in addition to its input."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.builds.build import Build, Builds
from benchmarks.builds.data import load
from benchmarks.libraries import LIBRARIES, OURS
from benchmarks.markdown import in_bytes, table
from benchmarks.memory import measure_peaks
from benchmarks.results import Record
from benchmarks.updates.part import Plan

DATA = ("covtype", "higgs_shaped")
QUICK_DATA = ("adult",)


def compare_memory(builds: Builds, names: Sequence[str], plan: Plan) -> str:
    """Peaks of both builds on these data sets, and their ratios."""
    rows, failures = [], []
    for name in names:
        peaks = []
        for build in builds:
            record = _measure(build, name, plan)
            peaks += record.samples.get("peak_bytes", [])
            if record.failure:
                failures.append(f"{name} failed: {build.label}: {record.failure}")
        if len(peaks) == len(builds):
            old, new = peaks
            rows.append([name, in_bytes(old), in_bytes(new), f"{new / old:.2f}"])
    text = f"Peak memory of a fit in addition to its input, with {plan.settings}."
    return "\n\n".join([text, table(["data set", "old", "new", "new / old"], rows), *failures])


def _measure(build: Build, name: str, plan: Plan) -> Record:
    (record,) = measure_peaks(
        load(name),
        [LIBRARIES[OURS]],
        plan.settings,
        lambda line: plan.say(f"{build.label}  {line}"),
        environment=build.environment(),
    )
    return record
