"""Run experiments case by case and save each case when it is done."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.results import this_commit
from datasets import DataNotFoundError
from experiments.harness.experiment import Case, Experiment, Scale
from experiments.harness.results import Done, Results, load_results, new_results, today

NO_COMMIT = "warning: the package has no commit or differs from it, so nothing can be resumed"


def run(
    experiments: Sequence[Experiment],
    scale: Scale,
    folder: Path,
    *,
    again: bool = False,
    resume: bool = False,
    console: Console,
) -> list[Results]:
    """Measure the cases without results; returns the results of each experiment.

    With ``again`` all cases are measured, and with ``resume`` all that were not measured at the
    present commit on this machine: an interrupted run can be continued, and one after a change of
    the package begins anew.
    """
    results = []
    if resume and not this_commit():
        console.print(NO_COMMIT)
    with _progress(console) as progress:
        whole = progress.add_task("experiments", total=len(experiments), what="")
        for experiment in experiments:
            results.append(_run_one(experiment, scale, folder, again, resume, progress))
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
    experiment: Experiment,
    scale: Scale,
    folder: Path,
    again: bool,
    resume: bool,
    progress: Progress,
) -> Results:
    results = new_results(experiment.name, scale)
    before = None if again else load_results(folder, experiment.name)
    if before is not None:
        others = (before.machine, before.versions) != (results.machine, results.versions)
        results.cases = [] if resume and others else before.cases
    cases = list(experiment.cases(scale))
    task = progress.add_task(experiment.name, total=len(cases), what="")
    for case in cases:
        progress.update(task, what=case.key)
        if not (results.is_current(case) if resume else case in results):
            done = _measure(case)
            done.commit = results.commit
            results.add(done)
            results.save(folder)
            if done.failure:
                progress.console.print(f"{experiment.name}: {case.key} failed: {done.failure}")
        progress.advance(task)
    results.in_order_of(cases)
    results.save(folder)
    progress.update(task, what=f"{results.seconds():.0f} s")
    for name in results.skipped():
        progress.console.print(f"{experiment.name}: skipped {name}")
    return results


def _measure(case: Case) -> Done:
    # Timed updates collect garbage before they start. Freezing the objects that exist by now
    # spares them a pass over all loaded libraries, which takes longer than a small update.
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    done = Done(dict(case.labels), {}, 0.0, date=today(), plan=case.plan)
    try:
        values = case.measure()
        json.dumps(values, allow_nan=False)  # raises here rather than when it is saved
        done.values = values
    except DataNotFoundError as error:
        done.missing = str(error)
    except Exception as error:  # a peer may raise anything; the other cases still run
        done.failure = f"{type(error).__name__}: {error}"
    done.seconds = time.perf_counter() - start
    return done
