"""A sliding window over rows in their order, each predicted before it is added."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

import datasets
from benchmarks.goal import Goal, fold, points
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.updates.learners import (
    RIVER,
    TOLERANT,
    Learner,
    Retrained,
    RowByRow,
    Untouched,
    Updated,
    start,
    step,
)
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import quietness
from datasets import Table, Target

DATA = "electricity"
WINDOW, QUICK_WINDOW = 10_000, 1_000
STEP = 250
QUICK_STEPS = 3
STRETCHES = 5  # in which the table shows the error over time


def measure(name: str, plan: Plan) -> list[Record]:
    """Let the learners follow the stream side by side, step by step."""
    X, y = datasets.load_in_order(name)
    window = QUICK_WINDOW if plan.quick else WINDOW
    firsts = range(window, len(y) - STEP + 1, STEP)[: QUICK_STEPS if plan.quick else None]
    return follow(_learners(plan), X, y, firsts, plan)


def follow(
    learners: Sequence[Learner], X: Table, y: Target, firsts: range, plan: Plan
) -> list[Record]:
    """Let learners learn the rows before the first step, then those of each step.

    ``firsts`` are the places in the stream at which the steps begin.
    """
    window, n_rows = firsts.start, firsts.step
    for learner in learners:
        record = learner.record
        record.case.update(window=window, step=n_rows, steps=len(firsts))
        start(learner, X, y, window)
        plan.say(f"{record.data}  {record.library}  learned the first {window:,} rows")
    for first in firsts:
        step(learners, X, y, first, first + n_rows)
    for learner in learners:
        record = learner.record
        plan.say(
            f"{record.data}  {record.library}  error {error_of(record) or 0:.2%}"
            f"  {sum(seconds_of_steps(record)):.2f} s"
        )
    return [learner.record for learner in learners]


def _learners(plan: Plan) -> list[Learner]:
    learners: list[Learner] = [
        Updated(DATA, plan, tolerance=TOLERANT),
        Updated(DATA, plan),
        Untouched(DATA, plan),
    ]
    if plan.yardstick is not None:
        learners.append(Retrained(DATA, plan))
    if RIVER in plan.peers:
        learners.append(RowByRow(DATA, plan))
    return learners


def error_of(record: Record | None) -> float | None:
    """Error over all steps."""
    values = None if record is None else record.samples.get("error")
    return sum(values) / len(values) if values else None


def seconds_of_steps(record: Record | None) -> list[float]:
    """Seconds of learning at each step, without the fit to the first window.

    For a retrained library only the training counts, not the garbage collection before it.
    """
    samples = {} if record is None else record.samples
    return samples.get("fit_seconds", samples.get("learn_seconds", []))[1:]


def _faster(ours: Record | None, theirs: Record | None) -> float | None:
    """Their median step times the number of steps, relative to our total.

    On a busy machine, single steps of theirs can take a hundred times as long, which must not
    count in our favour. All of our steps count.
    """
    a, b = seconds_of_steps(ours), seconds_of_steps(theirs)
    return len(a) * median(b) / sum(a) if a and b else None


TITLES = {YARDSTICK: "LightGBM, retrained", RIVER.name: "river"}


def title_of(record: Record) -> str:
    """Title of a learner."""
    if record.library != OURS:
        return TITLES[record.library]
    if record.case.get("untouched"):
        return "graftboost, untouched"
    what = "tolerance" if "tolerance" in record.case else "fidelity"
    return f"graftboost, updated, {what} {record.case[what]:g}"


def tables(run: Run) -> str:
    """Error over time and in total, and the seconds."""
    records = [record for record in run.records if not record.failure]
    rows = []
    for record in records:
        stretches = np.array_split(np.array(record.samples["error"]), STRETCHES)
        error, steps = error_of(record), seconds_of_steps(record)
        refits = record.samples.get("refits")
        rows.append(
            [
                title_of(record),
                *(in_percent(float(part.mean())) if len(part) else "-" for part in stretches),
                "-" if error is None else f"**{in_percent(error)}**",
                "-" if record.case.get("untouched") else in_seconds(sum(steps)),
                "-" if record.case.get("untouched") else in_seconds(median(steps)),
                in_seconds(sum(record.samples["predict_seconds"])),
                "-" if refits is None else f"{sum(refits):.0f} of {len(refits)}",
            ]
        )
    ordinals = [f"part {part + 1}" for part in range(STRETCHES)]
    head = ["learner", *ordinals, "error", "learning", "median step", "predicting", "refits"]
    text = f"{table(head, rows)}\n\n{quietness(run)}"
    if records:
        case = records[0].case
        text = (
            f"{DATA} in its order, in {case['steps']} steps. At each step, {case['step']} rows are "
            f"predicted and then added, and the {case['step']} oldest of a window of "
            f"{float(case['window']):,.0f} are removed. river's adaptive random forest has no "
            f"window and learns row by row. The error is given for {STRETCHES} parts of the stream "
            "and in total; seconds exclude the first window. Refits: the number of steps at which "
            "a refit was cheaper than an update.\n\n" + text
        )
    return text


def goals(run: Run | None) -> list[Goal]:
    """Compared with a retrain at each step, and with an adaptive random forest."""
    ours = theirs = river = None
    if run is not None:
        ours = run.find(DATA, OURS, tolerance=TOLERANT)
        theirs, river = run.find(DATA, YARDSTICK), run.find(DATA, RIVER.name)
    above, above_river = ({DATA: _above(ours, other)} for other in (theirs, river))
    faster = {DATA: _faster(ours, theirs)}
    return [
        Goal(
            "stream (tolerance 1000): error minus that of LightGBM's retrains", 0.005, above, points
        ),
        Goal(
            "stream (tolerance 1000): speed-up over LightGBM's retrains",
            4.0,
            faster,
            fold,
            least=True,
        ),
        Goal(
            "stream (tolerance 1000): error minus that of river's forest",
            0.0,
            above_river,
            points,
        ),
    ]


def _above(ours: Record | None, other: Record | None) -> float | None:
    a, b = error_of(ours), error_of(other)
    return a - b if a is not None and b is not None else None


PART = Part("stream", (DATA,), (DATA,), measure, tables, goals, peers=(LIBRARIES[YARDSTICK], RIVER))
