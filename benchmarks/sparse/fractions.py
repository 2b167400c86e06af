"""0.1% and 1% of the rows of a sparse table out or in: seconds, refits, and what they buy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import datasets
from benchmarks.goal import Goal, fold
from benchmarks.libraries import OURS
from benchmarks.results import Record, Run
from benchmarks.sparse.part import sparse_part
from benchmarks.updates.fractions import SHARES, WAYS, measure_shares, tables
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import times_faster

WANTED = ("news20_ngrams", "reuters21578")
SHOWN = "rcv1_sample"
HELD = SHARES[-1]  # the share that is held against the limit
LIMIT = 3.0
LARGE = {"news20_ngrams"}  # each draw copies the model, and trains it again
LARGE_DRAWS = 5


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Draw rows; each draw has a copy of the fitted model."""
    if name in LARGE:
        few, many = (min(draws, LARGE_DRAWS) for draws in plan.draws)
        plan = replace(plan, draws=(few, many))
    return measure_shares(datasets.load_sparse(name), WAYS, plan)


def goals(run: Run | None) -> list[Goal]:
    """Of removing and adding the slower one counts, with the default tolerance."""
    return [
        Goal(
            f"sparse: {HELD:.0%} of the rows out or in, times faster than LightGBM's retrain",
            LIMIT,
            {name: _slower(run, name) for name in WANTED},
            fold,
            least=True,
        )
    ]


def _slower(run: Run | None, name: str) -> float | None:
    if run is None:
        return None
    records = (run.find(name, OURS, way=way, share=HELD, default=True) for way in WAYS)
    both = [times_faster(run, record, "update_seconds") for record in records]
    known = [value for value in both if value is not None]
    return min(known) if len(known) == len(WAYS) else None


PART = sparse_part("fractions", (*WANTED, SHOWN), (SHOWN,), measure, tables, goals)
