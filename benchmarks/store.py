"""Models on disk: durable removals, and files for prediction."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
from benchmarks.goal import Goal, fold, times
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_bytes, in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.settings import Settings
from datasets import Dataset

KIND = "store"
REMOVED_FROM = ("credit_info", "covtype")
SAVED = ("adult", "credit_info")
QUICK = ("adult",)
HELP = "help"  # measured besides the data sets

# Timed inside the new interpreter, so that its start is in neither figure.
LOADING = """
import time
start = time.perf_counter()
import graftboost
from graftboost.estimators import *
imported = time.perf_counter()
import numpy as np
model = graftboost.load({path!r})
model.predict_proba(np.zeros((1, model.n_features_in_), dtype=np.float32))
print(imported - start, time.perf_counter() - start)
"""


def measure_store(
    name: str, settings: Settings, repeats: int, quick: bool, say: Callable[[str], None]
) -> list[Record]:
    """Measure removals and files of one data set, with LightGBM in the same run, or the help."""
    if name == HELP:
        return [_help(repeats, say)]
    records = []
    data = datasets.load(name)
    model = LIBRARIES[OURS].model(data.task, settings).fit(data.X_train, data.y_train)
    with tempfile.TemporaryDirectory() as folder:
        if quick or name in REMOVED_FROM:
            records.append(_removals(data, model, Path(folder), repeats, say))
        if quick or name in SAVED:
            records.append(_files(data, model, Path(folder), repeats, say))
    if LIBRARIES[YARDSTICK].available():
        records.append(_yardstick(data, settings, repeats, name in SAVED or quick, say))
    return records


def _removals(
    data: Dataset, model: Any, folder: Path, repeats: int, say: Callable[[str], None]
) -> Record:
    from graftboost.store import Store

    record = Record(data.name, OURS, case={"what": "removals"})
    path = folder / "store"
    start = time.perf_counter()
    Store.create(path, model).close()
    record.add("create_seconds", time.perf_counter() - start)
    for row in range(repeats):
        start = time.perf_counter()
        with Store.open(path) as store:
            store.remove([2 * row])
        record.add("remove_seconds", time.perf_counter() - start)
        command = [sys.executable, "-m", "graftboost", "remove", str(path), str(2 * row + 1)]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        record.add("command_seconds", time.perf_counter() - start)
        start = time.perf_counter()
        with Store.open(path) as store:
            opened = time.perf_counter()
            store.compact()
        record.add("reopen_seconds", opened - start)
        record.add("compact_seconds", time.perf_counter() - opened)
    record.add("bytes", sum(file.stat().st_size for file in path.iterdir()))
    say(
        f"{data.name}  open, remove, close {record.best('remove_seconds'):.3f} s, command "
        f"{record.best('command_seconds'):.3f} s, compact {record.best('compact_seconds'):.2f} s"
    )
    return record


def _files(
    data: Dataset, model: Any, folder: Path, repeats: int, say: Callable[[str], None]
) -> Record:
    record = Record(data.name, OURS, case={"what": "file"})
    path = folder / "model.graft"
    model.save(path, updatable=False)
    record.add("bytes", path.stat().st_size)
    for _ in range(repeats + 1):
        done = subprocess.run(
            [sys.executable, "-c", LOADING.format(path=str(path))],
            check=True,
            capture_output=True,
            text=True,
        )
        imported, loaded = map(float, done.stdout.split())
        record.add("import_seconds", imported)
        record.add("load_seconds", loaded)
    say(f"{data.name}  file for prediction {path.stat().st_size:,} bytes")
    return record


def _yardstick(
    data: Dataset, settings: Settings, repeats: int, saved: bool, say: Callable[[str], None]
) -> Record:
    record = Record(data.name, YARDSTICK)
    for _ in range(repeats):
        model = LIBRARIES[YARDSTICK].model(data.task, settings)
        start = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        record.add("fit_seconds", time.perf_counter() - start)
    if saved:
        record.add("bytes", len(model.booster_.model_to_string().encode()))
    say(f"{data.name}  LightGBM trains in {record.best('fit_seconds'):.3f} s")
    return record


def _help(repeats: int, say: Callable[[str], None]) -> Record:
    record = Record(HELP, OURS)
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "graftboost", "--help"],
            check=True,
            capture_output=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        record.add("help_seconds", time.perf_counter() - start)
    say(f"graftboost --help  {record.best('help_seconds'):.3f} s")
    return record


def text(run: Run) -> str:
    """The tables of a run."""
    removals, files = [], []
    for name in run.data_names():
        trained = run.best(name, YARDSTICK, "fit_seconds")
        if record := run.find(name, OURS, what="removals"):
            cells = [
                f"{in_seconds(record.best(measure) or 0)}{_faster(record.best(measure), trained)}"
                for measure in ("remove_seconds", "command_seconds")
            ]
            compact = in_seconds(record.best("compact_seconds") or 0)
            size = in_bytes(record.best("bytes") or 0)
            there = in_seconds(trained) if trained else "-"
            removals.append([name, *cells, compact, size, there])
        if record := run.find(name, OURS, what="file"):
            theirs = run.best(name, YARDSTICK, "bytes")
            ours = record.best("bytes") or 0
            ratio = f"**{ours / theirs:.2f}** ({in_bytes(ours)})" if theirs else in_bytes(ours)
            files.append([name, ratio, f"**{_load_ratio(record):.2f}**"])
    parts = [
        table(
            [
                "data set",
                "open, remove a row, close",
                "`graftboost remove`",
                "compact",
                "store",
                "LightGBM's training",
            ],
            removals,
        ),
        table(
            [
                "data set",
                "file for prediction relative to LightGBM's text",
                "import, load and predict a row relative to import",
            ],
            files,
        ),
    ]
    if (seconds := run.best(HELP, OURS, "help_seconds")) is not None:
        parts.append(f"`graftboost --help` takes {in_seconds(seconds)}.")
    return "\n\n".join(parts)


def _faster(seconds: float | None, trained: float | None) -> str:
    return f" (**{fold(trained / seconds)}**)" if seconds and trained else ""


def _load_ratio(record: Record) -> float:
    return (record.best("load_seconds") or 0) / (record.best("import_seconds") or 1)


def goals(run: Run | None) -> list[Goal]:
    """Goals, with the values of the run."""

    def to_training(name: str, measure: str) -> float | None:
        record = run.find(name, OURS, what="removals") if run else None
        trained = run.best(name, YARDSTICK, "fit_seconds") if run else None
        seconds = record.best(measure) if record else None
        return trained / seconds if trained and seconds else None

    def file_of(name: str) -> Record | None:
        return run.find(name, OURS, what="file") if run else None

    def size(name: str) -> float | None:
        record, theirs = file_of(name), run.best(name, YARDSTICK, "bytes") if run else None
        ours = record.best("bytes") if record else None
        return ours / theirs if ours and theirs else None

    loads = {name: _load_ratio(record) if (record := file_of(name)) else None for name in SAVED}
    shown = {HELP: run.best(HELP, OURS, "help_seconds") if run else None}
    return [
        *(
            Goal(
                f"open a store, remove a row, close: speed-up over LightGBM's retrain, {name}",
                limit,
                {name: to_training(name, "remove_seconds")},
                fold,
                least=True,
            )
            for name, limit in (("covtype", 20), ("credit_info", 5))
        ),
        Goal(
            "`graftboost remove` as a process: speed-up over LightGBM's retrain, covtype",
            5,
            {"covtype": to_training("covtype", "command_seconds")},
            fold,
            least=True,
        ),
        Goal(
            "file for prediction relative to LightGBM's text",
            2,
            {name: size(name) for name in SAVED},
            times,
        ),
        Goal("import, load and predict a row relative to import", 1.2, loads, times),
        Goal("graftboost --help", 0.5, shown, in_seconds),
    ]
