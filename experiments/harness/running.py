"""Run experiments: case by case, each saved when it is done."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from datasets import DataNotFoundError
from experiments.harness.experiment import Case, Experiment, Scale
from experiments.harness.pages import write_files
from experiments.harness.results import Done, Results, load_results, new_results, today


def run(
    experiments: Sequence[Experiment], scale: Scale, folder: Path, *, again: bool, console: Console
) -> list[Results]:
    """Measure what is not there yet; returns the results of each experiment."""
    results = []
    with _progress(console) as progress:
        whole = progress.add_task("experiments", total=len(experiments), what="")
        for experiment in experiments:
            results.append(_run_one(experiment, scale, folder, again, progress))
            progress.advance(whole)
    return results


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
        console=console,
    )


def _run_one(
    experiment: Experiment, scale: Scale, folder: Path, again: bool, progress: Progress
) -> Results:
    results = new_results(experiment.name, scale)
    before = None if again else load_results(folder, experiment.name)
    if before is not None:
        results.cases = before.cases
    cases = list(experiment.cases(scale))
    task = progress.add_task(experiment.name, total=len(cases), what="")
    for case in cases:
        progress.update(task, what=case.key)
        if case not in results:
            done = _measure(case)
            results.add(done)
            results.save(folder)
            if done.failure:
                progress.console.print(f"{experiment.name}: {case.key} failed: {done.failure}")
        progress.advance(task)
    results.in_order_of(cases)
    results.save(folder)
    write_files(experiment, results, folder)
    progress.update(task, what=f"{results.seconds():.0f} s")
    for name in results.skipped():
        progress.console.print(f"{experiment.name}: skipped {name}")
    return results


def _measure(case: Case) -> Done:
    # What is loaded by now stays. Updates that are timed collect garbage before they start, which
    # takes longer than a small update if all libraries are gone through each time.
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    done = Done(dict(case.labels), {}, 0.0, date=today(), plan=case.plan)
    try:
        values = case.measure()
        json.dumps(values, allow_nan=False)  # or it could not be saved
        done.values = values
    except DataNotFoundError as error:
        done.missing = str(error)
    except Exception as error:  # a peer may raise anything, and the other cases go on
        done.failure = f"{type(error).__name__}: {error}"
    done.seconds = time.perf_counter() - start
    return done
