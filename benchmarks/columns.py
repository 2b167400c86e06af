"""Columns in which one value is frequent, as codes and as categories.

Codes are numbers of a float32 array; categories are the same columns of a data frame, with a
category dtype. graftboost is compared with LightGBM given the same form and, for categories, also
with LightGBM given codes, which take it less time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS, YARDSTICK, Library, warm_up
from benchmarks.markdown import four_digits, in_seconds, table
from benchmarks.measure import log_loss
from benchmarks.results import Record, Run
from benchmarks.settings import Settings
from datasets import SKEWED

KIND = "columns"
CODES, CATEGORIES = "codes", "categories"
FORMS = (CODES, CATEGORIES)
LIMIT = 0.8
QUICK_ROWS = 2_000
COMPARED = 50_000  # training rows whose loss is compared


def measure_columns(
    name: str,
    libraries: Sequence[Library],
    settings: Settings,
    repeats: int,
    quick: bool,
    say: Callable[[str], None],
) -> list[Record]:
    """Fit one table in both forms with each library, in turns."""
    data = SKEWED[name](n_rows=QUICK_ROWS) if quick else SKEWED[name]()
    n_rows, n_columns = data.codes.shape
    forms = {CODES: data.codes, CATEGORIES: data.frame}
    for library in libraries:
        warm_up(library, "classification", settings)
    records = {
        (library.name, form): Record(
            name, library.name, case={"form": form, "rows": n_rows, "columns": n_columns}
        )
        for library in libraries
        for form in FORMS
    }
    for _ in range(repeats):
        for library in libraries:
            for form, X in forms.items():
                record = records[library.name, form]
                with library.thread_limit(settings.threads):
                    model = library.model("classification", settings)
                    gc.collect()
                    start = time.perf_counter()
                    model.fit(X, data.y)
                    record.add("fit_seconds", time.perf_counter() - start)
                if "log_loss" not in record.samples:  # every turn gives the same model
                    predicted = library.predict(model, X[:COMPARED], "classification", settings)
                    record.add("log_loss", log_loss(predicted, data.y[:COMPARED]))
                seconds = record.samples["fit_seconds"][-1]
                say(f"{name}  {library.name}  as {form}  fit {seconds:.3f} s")
                del model  # frees its memory before the next fit
    return list(records.values())


def _seconds(run: Run | None, name: str, library: str, form: str) -> float | None:
    record = run.find(name, library, form=form) if run is not None else None
    return record.best("fit_seconds") if record is not None else None


def _ratio(run: Run | None, name: str, form: str, form_of_yardstick: str) -> float | None:
    ours = _seconds(run, name, OURS, form)
    theirs = _seconds(run, name, YARDSTICK, form_of_yardstick)
    return ours / theirs if ours is not None and theirs else None


def text(run: Run) -> str:
    """One row per table and form."""
    rows = []
    for record in run.records:
        if record.library != OURS:
            continue
        form = str(record.case["form"])
        theirs = run.find(record.data, YARDSTICK, form=form)
        ratios = [_ratio(run, record.data, form, other) for other in (form, CODES)]
        losses = [None if found is None else found.best("log_loss") for found in (record, theirs)]
        seconds = record.best("fit_seconds")
        rows.append(
            [
                record.data,
                f"{record.case['rows']:,} x {record.case['columns']}",
                form,
                "-" if seconds is None else in_seconds(seconds),
                *("-" if ratio is None else f"**{times(ratio)}**" for ratio in ratios),
                *("-" if loss is None else four_digits(loss) for loss in losses),
            ]
        )
    heads = [
        "table",
        "size",
        "columns as",
        "fit",
        "relative to LightGBM, same form",
        "LightGBM, codes",
        "log loss",
        "LightGBM, same form",
    ]
    return f"The loss is that of up to {COMPARED:,} training rows.\n\n" + table(heads, rows)


def goals(run: Run | None) -> list[Goal]:
    """Fit time relative to LightGBM's, for each form."""
    compared = (
        ("skewed columns", CODES, CODES),
        ("categories", CATEGORIES, CATEGORIES),
        ("categories, which gets codes", CATEGORIES, CODES),
    )
    return [
        Goal(
            f"fit time relative to LightGBM's, two threads, {what}",
            LIMIT,
            {name: _ratio(run, name, form, other) for name in SKEWED},
            times,
        )
        for what, form, other in compared
    ]
