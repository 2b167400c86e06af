"""Test losses over several splits into training and test rows, compared with LightGBM's.

A single split is not enough: the losses of two libraries on the same test rows differ by a per
cent or more by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import datasets
from benchmarks.goal import Goal, percent
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.markdown import four_digits, table
from benchmarks.measure import scores
from benchmarks.results import Record, Run
from benchmarks.settings import Settings
from datasets import Dataset, Task, names_of

KIND = "accuracy"
SPLITS, QUICK_SPLITS = 3, 1
LIMIT = 0.01
LOSSES: dict[Task, tuple[str, str]] = {
    "classification": ("log loss", "log_loss"),
    "regression": ("squared error", "squared_error"),
}


def measure_accuracy(
    name: str,
    libraries: Sequence[Library],
    settings: Settings,
    n_splits: int,
    say: Callable[[str], None],
) -> list[Record]:
    """Fit each library to each split of one data set; records have one value per split."""
    records = [Record(name, library.name, case={"splits": n_splits}) for library in libraries]
    for split in range(n_splits):
        data = datasets.load(name, split)
        for library, record in zip(libraries, records, strict=True):
            for measure, value in _test_scores(library, data, settings).items():
                record.add(measure, value)
        words = [f"{r.library} {four_digits(r.samples[_loss_of(name)][-1])}" for r in records]
        say(f"{name}  split {split}  {'  '.join(words)}")
    return records


def _test_scores(library: Library, data: Dataset, settings: Settings) -> dict[str, float]:
    with library.thread_limit(settings.threads):
        model = library.model(data.task, settings).fit(data.X_train, data.y_train)
        return scores(data, library.predict(model, data.X_test, data.task, settings))


def _loss_of(name: str) -> str:
    """Measure of the loss of a data set."""
    return LOSSES["regression" if name in names_of("regression") else "classification"][1]


def above(run: Run | None, name: str) -> float | None:
    """Mean loss over the splits relative to LightGBM's, minus 1; None if it was not measured."""
    means = []
    for library in (OURS, YARDSTICK):
        record = run.find(name, library) if run is not None else None
        values = record.samples.get(_loss_of(name)) if record is not None else None
        if not values:
            return None
        means.append(fmean(values))
    return means[0] / means[1] - 1


def text(run: Run) -> str:
    """One row per data set, one column per library."""
    columns = [name for name in LIBRARIES if any(r.library == name for r in run.records)]
    rows = []
    for name in run.data_names():
        found = {library: run.find(name, library) for library in columns}
        values = {
            library: record.samples.get(_loss_of(name), [])
            for library, record in found.items()
            if record is not None
        }
        difference = above(run, name)
        rows.append(
            [
                name,
                next(what for what, measure in LOSSES.values() if measure == _loss_of(name)),
                "-" if difference is None else f"**{percent(difference)}**",
                *(_cell(values.get(library, [])) for library in columns),
            ]
        )
    head = ["data set", "loss", "difference of the means"]
    head += [LIBRARIES[library].title for library in columns]
    return (
        "Mean of the test loss over the splits, and the loss of each split. The first split is the "
        "official one, if there is one; the others are random, with as many test rows.\n\n"
        + table(head, rows)
    )


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{four_digits(fmean(values))} ({', '.join(map(four_digits, values))})"


def goals(run: Run | None) -> list[Goal]:
    """The mean loss of each data set; quick runs have too few splits."""
    few = run is not None and any(r.case.get("splits") != SPLITS for r in run.records)
    return [
        Goal(
            f"test {what} above LightGBM's, mean of {SPLITS} splits",
            LIMIT,
            {name: None if few else above(run, name) for name in names_of(task)},
            percent,
        )
        for task, (what, _) in LOSSES.items()
    ]
