"""A sliding window over emails: updates compared with LightGBM retrained at every step."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import Goal, fold, points
from benchmarks.libraries import OURS, YARDSTICK
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.sparse.part import sparse_part
from benchmarks.updates.learners import TOLERANT, Learner, Retrained, Untouched, Updated
from benchmarks.updates.part import Plan
from benchmarks.updates.stream import error_of, follow, seconds_of_steps, title_of
from benchmarks.updates.timing import quietness

DATA = "spam_stream"
WINDOW, QUICK_WINDOW = 2_000, 500
STEP = 100
QUICK_STEPS = 3
LIMIT_OF_ERROR = 0.005
LIMIT_OF_TIME = 4.0


class Excess(NamedTuple):
    """Largest difference of an error from that of the retrains, and its step."""

    value: float
    step: int  # from 1

    def __str__(self) -> str:
        return f"{points(self.value)} (step {self.step})"


def measure(name: str, plan: Plan) -> list[Record]:
    """Run all learners on the stream, step by step."""
    X, y = datasets.load_sparse_in_order(name)
    window = QUICK_WINDOW if plan.quick else WINDOW
    firsts = range(window, len(y) - STEP + 1, STEP)[: QUICK_STEPS if plan.quick else None]
    learners: list[Learner] = [
        Updated(name, plan),
        Updated(name, plan, tolerance=TOLERANT),
        Untouched(name, plan),
    ]
    if plan.yardstick is not None:
        learners.append(Retrained(name, plan))
    return follow(learners, X, y, firsts, plan)


def running(errors: list[float]) -> NDArray[np.float64]:
    """Error over all rows predicted up to each step; all steps have the same size.

    Examples
    --------
    >>> running([0.5, 0.0, 0.25])
    array([0.5 , 0.25, 0.25])
    """
    return np.asarray(np.cumsum(errors) / np.arange(1, len(errors) + 1))


def largest_excess(ours: Record | None, theirs: Record | None, *, so_far: bool) -> Excess | None:
    """Largest difference from theirs, of the error up to a step or of a single step."""
    if ours is None or theirs is None or not ours.samples or not theirs.samples:
        return None
    a, b = ours.samples["error"], theirs.samples["error"]
    above = running(a) - running(b) if so_far else np.array(a) - np.array(b)
    worst = int(np.argmax(above))
    return Excess(float(above[worst]), worst + 1)


def faster(ours: Record | None, theirs: Record | None) -> float | None:
    """Their seconds relative to ours, over all steps.

    Single steps of theirs that a busy machine made slow must not count in our favour, so their
    total is at most the number of steps times their median.
    """
    a, b = seconds_of_steps(ours), seconds_of_steps(theirs)
    return min(sum(b), len(b) * median(b)) / sum(a) if a and b else None


def tables(run: Run) -> str:
    """Errors and seconds of each learner."""
    records = [record for record in run.records if not record.failure]
    theirs = run.find(DATA, YARDSTICK)
    head = [
        "learner",
        "error",
        "error up to a step minus LightGBM's, at most",
        "error of a single step minus LightGBM's, at most",
        "learning",
        "speed-up over LightGBM",
        "median step",
        "predicting",
        "refits",
    ]
    text = f"{table(head, [_row(record, theirs) for record in records])}\n\n{quietness(run)}"
    if not records:
        return text
    case = records[0].case
    return (
        f"{DATA} in its order, in {case['steps']} steps. At each step, {case['step']} rows are "
        f"predicted and then added, and the {case['step']} oldest of a window of "
        f"{float(case['window']):,.0f} are removed; LightGBM is retrained on the window. The error "
        "up to a step is that of all rows predicted by then. Seconds exclude the first window. "
        "Refits: the number of steps at which a refit was cheaper than an update.\n\n"
        f"{text}"
    )


def _row(record: Record, theirs: Record | None) -> list[str]:
    error, steps = error_of(record), seconds_of_steps(record)
    refits = record.samples.get("refits")
    still = bool(record.case.get("untouched"))
    compared = theirs if record.library == OURS else None
    excesses = [largest_excess(record, compared, so_far=so_far) for so_far in (True, False)]
    times = None if still else faster(record, compared)
    return [
        title_of(record),
        "-" if error is None else f"**{in_percent(error)}**",
        *("-" if excess is None else str(excess) for excess in excesses),
        "-" if still else in_seconds(sum(steps)),
        "-" if times is None else f"**{fold(times)}**",
        "-" if still else in_seconds(median(steps)),
        in_seconds(sum(record.samples["predict_seconds"])),
        "-" if refits is None else f"{sum(refits):.0f} of {len(refits)}",
    ]


def goals(run: Run | None) -> list[Goal]:
    """Compared with a retrain at each step; quick runs, with a smaller window, do not count."""
    result = []
    for words, by_default in (("", True), (f" (tolerance {TOLERANT:g})", False)):
        ours, theirs = _found(run, by_default=by_default)
        excess = largest_excess(ours, theirs, so_far=True)
        above = None if excess is None else excess.value
        result += [
            Goal(
                f"sparse stream{words}: error up to any step minus LightGBM's",
                LIMIT_OF_ERROR,
                {DATA: above},
                points,
            ),
            Goal(
                f"sparse stream{words}: speed-up over LightGBM's retrains",
                LIMIT_OF_TIME,
                {DATA: faster(ours, theirs)},
                fold,
                least=True,
            ),
        ]
    return result


def _found(run: Run | None, *, by_default: bool) -> tuple[Record | None, Record | None]:
    """Ours, with the default fidelity or with the tolerance for streams, and LightGBM's."""
    if run is None:
        return None, None
    for ours in run.records:
        tolerance = ours.case.get("tolerance")
        if ours.library == OURS and (tolerance != TOLERANT) == by_default:
            if ours.case.get("window") != WINDOW or ours.case.get("untouched"):
                continue
            return ours, run.find(DATA, YARDSTICK, window=WINDOW)
    return None, None


PART = sparse_part("stream", (DATA,), (DATA,), measure, tables, goals)
