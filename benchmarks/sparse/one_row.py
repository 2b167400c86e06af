"""One row of a sparse table out, one in, from one model that goes through them all."""

from __future__ import annotations

import datasets
from benchmarks.goal import Goal, fold
from benchmarks.libraries import LIBRARIES, YARDSTICK
from benchmarks.results import Record, Run
from benchmarks.sparse import COMMAND
from benchmarks.updates.one_row import QUICK_ROWS, measure_rows, slower, tables
from benchmarks.updates.part import Part, Plan

ROWS = 20  # of each, removed and added one by one
WANTED = ("news20_ngrams", "reuters21578")
SHOWN = ("spam_stream", "rcv1_sample")
LIMIT = 50.0


def measure(name: str, plan: Plan) -> list[Record]:
    """Remove a row, add a row, in turns."""
    return measure_rows(datasets.load_sparse(name), QUICK_ROWS if plan.quick else ROWS, plan)


def goals(run: Run | None) -> list[Goal]:
    """Of removing and adding the slower one counts."""
    what = "sparse: one row out or in, times faster than LightGBM's retrain"
    return [Goal(what, LIMIT, {name: slower(run, name) for name in WANTED}, fold, least=True)]


PART = Part(
    "one-row",
    data=(*WANTED, *SHOWN),
    quick_data=("rcv1_sample",),
    measure=measure,
    tables=tables,
    goals=goals,
    peers=(LIBRARIES[YARDSTICK],),
    command=COMMAND,
)
