"""Remove and add one row of a sparse table, with one model for all rows."""

from __future__ import annotations

import datasets
from benchmarks.goal import Goal, fold
from benchmarks.results import Record, Run
from benchmarks.sparse.part import sparse_part
from benchmarks.updates.one_row import QUICK_ROWS, measure_rows, slower, tables
from benchmarks.updates.part import Plan

ROWS = 20  # removed and added one by one
WANTED = ("news20_ngrams", "reuters21578")
SHOWN = ("spam_stream", "rcv1_sample")
LIMIT = 50.0


def measure(name: str, plan: Plan) -> list[Record]:
    """Remove a row and add a row, in turns."""
    return measure_rows(datasets.load_sparse(name), QUICK_ROWS if plan.quick else ROWS, plan)


def goals(run: Run | None) -> list[Goal]:
    """The slower of removing and adding counts."""
    what = "sparse: removing or adding one row: speed-up over LightGBM's retrain"
    return [Goal(what, LIMIT, {name: slower(run, name) for name in WANTED}, fold, least=True)]


PART = sparse_part("one-row", (*WANTED, *SHOWN), ("rcv1_sample",), measure, tables, goals)
