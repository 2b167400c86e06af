"""Fits of sparse data: seconds, test loss and memory of the process."""

from __future__ import annotations

import datasets
from benchmarks import memory
from benchmarks.goal import Goal, gigabytes, percent, times
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import four_digits, in_bytes, in_percent, in_seconds, table
from benchmarks.measure import measure as measure_fits
from benchmarks.results import Record, Run
from benchmarks.sparse.part import sparse_part
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import quietness

WIDEST = "news20_ngrams"  # 1.66 million columns: a higher limit
USUAL = ("reuters21578", "spam_stream")
SHOWN = "rcv1_sample"  # 1,000 rows: no goal
DATA = (WIDEST, *USUAL, SHOWN)

LIMIT_OF_WIDEST, LIMIT = 1.5, 1.2
LIMIT_OF_LOSS = 0.02
LIMIT_OF_MEMORY = 6e9


def measure(name: str, plan: Plan) -> list[Record]:
    """Fit and predict in turns, then fit once more in a separate process per library."""
    data = datasets.load_sparse(name)
    libraries = [LIBRARIES[OURS], *plan.peers]
    records = measure_fits(data, libraries, plan.settings, plan.repeats, plan.say)
    X = data.X_train
    for record in records:
        record.case.update(rows=X.shape[0], columns=X.shape[1], stored=X.nnz / X.shape[0])
    if memory.available():
        peaks = memory.measure_peaks(data, libraries, plan.settings, plan.say)
        for record, peak in zip(records, peaks, strict=True):
            # Seconds are those of the turns, in which the machine is equally busy for both.
            found = {what: v for what, v in peak.samples.items() if what != "fit_seconds"}
            record.samples.update(found)
            record.failure = record.failure or peak.failure
    return records


def tables(run: Run) -> str:
    """Seconds, losses and memory; a cell is our ratio to LightGBM's and our figure."""
    head = [
        "data set",
        "rows",
        "columns",
        "stored per row",
        *("fit", "LightGBM's"),
        *("predict", "LightGBM's"),
        *("test log loss", "LightGBM's"),
        *("test error", "LightGBM's"),
    ]
    rows = [_row(run, name) for name in run.data_names()]
    text = (
        "Our figure relative to LightGBM's, and our figure. Fits and predictions are the best of "
        f"{run.repeats}, in turns.\n\n{table(head, rows)}\n\n{quietness(run)}"
    )
    peaks = [_memory_row(run, name) for name in run.data_names()]
    if not any(run.best(name, OURS, "process_bytes") for name in run.data_names()):
        return text
    head = [
        "data set",
        "process, fit",
        "process, fit and a row removed",
        "process, LightGBM's fit",
        "fit in addition to the input",
        "LightGBM's fit in addition to the input",
    ]
    return (
        f"{text}\n\nPeak memory in a separate process per fit, including the state that updates "
        "need. Histograms are computed when an update needs them, so the peak is also given after "
        f"a row was removed.\n\n{table(head, peaks)}"
    )


def _row(run: Run, name: str) -> list[str]:
    record = run.find(name, OURS)
    case = record.case if record else {}
    cells = [
        name,
        *(f"{case[what]:,.0f}" if what in case else "-" for what in ("rows", "columns", "stored")),
    ]
    for measure, write, digits in (
        ("fit_seconds", in_seconds, 2),
        ("predict_seconds", in_seconds, 2),
        ("log_loss", four_digits, 3),
        ("error", in_percent, 3),
    ):
        ours, theirs = (run.best(name, library, measure) for library in (OURS, YARDSTICK))
        ratio = run.ratio(name, OURS, measure, YARDSTICK)
        text = "-" if ours is None else write(ours)
        cells.append(text if ratio is None else f"**{ratio:.{digits}f}** ({text})")
        cells.append("-" if theirs is None else write(theirs))
    return cells


def _memory_row(run: Run, name: str) -> list[str]:
    values = [
        run.best(name, OURS, "process_bytes"),
        run.best(name, OURS, "updated_bytes"),
        run.best(name, YARDSTICK, "process_bytes"),
        run.best(name, OURS, "peak_bytes"),
        run.best(name, YARDSTICK, "peak_bytes"),
    ]
    return [name, *("-" if value is None else in_bytes(value) for value in values)]


def goals(run: Run | None) -> list[Goal]:
    """Time, loss and memory."""
    above = {name: _ratio(run, name, "log_loss") for name in (WIDEST, *USUAL)}
    losses = {name: None if ratio is None else ratio - 1 for name, ratio in above.items()}
    whole = run.best(WIDEST, OURS, "updated_bytes") if run is not None else None
    return [
        Goal(
            f"sparse: fit time relative to LightGBM's, {WIDEST}",
            LIMIT_OF_WIDEST,
            {WIDEST: _ratio(run, WIDEST, "fit_seconds")},
            times,
        ),
        Goal(
            "sparse: fit time relative to LightGBM's",
            LIMIT,
            {name: _ratio(run, name, "fit_seconds") for name in USUAL},
            times,
        ),
        Goal("sparse: log loss above LightGBM's, at worst", LIMIT_OF_LOSS, losses, percent),
        Goal(
            f"sparse: memory of the process, fit and a row removed, {WIDEST}",
            LIMIT_OF_MEMORY,
            {WIDEST: whole},
            gigabytes,
        ),
    ]


def _ratio(run: Run | None, name: str, measure: str) -> float | None:
    return run.ratio(name, OURS, measure, YARDSTICK) if run is not None else None


PART = sparse_part("fit", DATA, (SHOWN,), measure, tables, goals)
