"""The speed-up of a fit of many rows from one thread to two, compared with LightGBM's."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library, warm_up
from benchmarks.markdown import in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.settings import Settings

KIND = "threads"
DATA = "higgs_shaped"
THREADS = (1, 2)
QUICK_ROWS = 2_000
LIMIT = 1.0


def measure_threads(
    libraries: Sequence[Library],
    settings: Settings,
    repeats: int,
    quick: bool,
    say: Callable[[str], None],
) -> list[Record]:
    """Fit the same rows with each library on two threads, and once on one, in turns.

    Fits on one thread take long, and other processes have a core of their own meanwhile.
    """
    data = datasets.higgs_shaped(QUICK_ROWS, 1) if quick else datasets.higgs_shaped()
    n_rows, n_columns = data.X_train.shape
    records = {
        (library.name, threads): Record(
            DATA, library.name, case={"threads": threads, "rows": n_rows, "columns": n_columns}
        )
        for library in libraries
        for threads in THREADS
    }
    for library in libraries:
        warm_up(library, data.task, settings)
    for turn in range(repeats):
        for threads in reversed(THREADS[turn > 0 :]):
            for library in libraries:
                record = records[library.name, threads]
                model = library.model(data.task, replace(settings, threads=threads))
                gc.collect()
                with library.thread_limit(threads):
                    start = time.perf_counter()
                    model.fit(data.X_train, data.y_train)
                    record.add("fit_seconds", time.perf_counter() - start)
                del model  # frees its memory before the next fit
                seconds = record.samples["fit_seconds"][-1]
                say(f"{DATA}  {library.name}  threads {threads}  fit {seconds:.2f} s")
    return list(records.values())


def _seconds(run: Run | None, library: str, threads: int) -> float | None:
    record = run.find(DATA, library, threads=threads) if run is not None else None
    return record.best("fit_seconds") if record is not None else None


def _speed_up(run: Run | None, library: str) -> float | None:
    one, two = (_seconds(run, library, threads) for threads in THREADS)
    return one / two if one and two else None


def text(run: Run) -> str:
    """One row per library."""
    rows = []
    for name in dict.fromkeys(record.library for record in run.records):
        seconds = [_seconds(run, name, threads) for threads in THREADS]
        speed_up = _speed_up(run, name)
        rows.append(
            [
                LIBRARIES[name].title,
                *("-" if value is None else in_seconds(value) for value in seconds),
                "-" if speed_up is None else f"**{times(speed_up)}**",
            ]
        )
    size = next((f"{r.case['rows']:,} x {r.case['columns']}" for r in run.records), "no rows")
    once = f"Best of {run.repeats} on two threads, and one fit on one thread."
    return f"{DATA}: {size}. {once}\n\n" + table(
        ["library", "1 thread", "2 threads", "speed-up"], rows
    )


def goals(run: Run | None) -> list[Goal]:
    """Our speed-up relative to LightGBM's; quick runs have too few rows to tell."""
    quick = run is not None and any(r.case["rows"] == QUICK_ROWS for r in run.records)
    ours, theirs = (_speed_up(run, name) for name in (OURS, YARDSTICK))
    value = ours / theirs if ours and theirs and not quick else None
    what = "fit of 5,500,000 x 28: speed-up from one thread to two relative to LightGBM's"
    return [Goal(what, LIMIT, {DATA: value}, times, least=True)]
