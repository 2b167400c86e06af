"""Remove and add 0.1% and 1% of the rows of a sparse table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import datasets
from benchmarks.goal import Goal, fold
from benchmarks.libraries import OURS
from benchmarks.results import Record, Run
from benchmarks.sparse.part import sparse_part
from benchmarks.updates.fractions import MANY, SHARES, WAYS, measure_sizes, tables
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import times_faster

WANTED = ("news20_ngrams", "reuters21578")
SHOWN = "rcv1_sample"
HELD = MANY  # the share with a goal
LIMIT = 3.0
LARGE = {"news20_ngrams"}  # each draw copies and refits the model
LARGE_DRAWS = 3


def measure(name: str, plan: Plan) -> Iterator[Record]:
    """Draw rows; each draw updates a copy of the fitted model."""
    if name in LARGE:
        few, many = (min(draws, LARGE_DRAWS) for draws in plan.draws)
        plan = replace(plan, draws=(few, many))
    return measure_sizes(datasets.load_sparse(name), WAYS, SHARES, plan)


def goals(run: Run | None) -> list[Goal]:
    """The slower of removing and adding counts, with the default fidelity."""
    return [
        Goal(
            f"sparse: removing or adding {HELD:.0%}: speed-up over LightGBM's retrain",
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
