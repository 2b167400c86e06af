"""Peak memory of a fit in addition to its input, and of the whole process.

Each fit runs in a fresh process, which is spawned: a forked child would inherit the pages and the
peak of its parent. The child imports the library, fits a few synthetic rows, loads the arrays,
releases free memory, resets the kernel's high-water mark, and only then fits. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.sparse import issparse, load_npz, save_npz

from benchmarks.goal import Goal, gigabytes, times
from benchmarks.libraries import ALL_LIBRARIES, FIXED, OURS, YARDSTICK, Library, warm_up
from benchmarks.results import Record, Run
from benchmarks.settings import Settings
from datasets import ROOT, AnyDataset, Table, Task, load

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
OOM_SCORE = Path("/proc/self/oom_score_adj")


# Bytes in addition to the input that are wanted of a fit, by data set.
WANTED = {"higgs_shaped": ("5,500,000 x 28", 2.3e9), "covtype": ("covtype, 700 trees", 1.0e9)}
LARGEST = "higgs_shaped"
WANTED_OF_FIXED = 1.3  # times LightGBM's, of a model that cannot be updated, on the largest


def available() -> bool:
    """Whether this system reports the high-water mark of a process and can reset it."""
    return STATUS.is_file() and CLEAR_REFS.exists()


def measure_memory(
    name: str, libraries: Sequence[Library], settings: Settings, say: Callable[[str], None]
) -> list[Record]:
    """Peak memory of each library's fit on one data set of the registry."""
    return measure_peaks(load(name), libraries, settings, say)


def measure_peaks(
    data: AnyDataset,
    libraries: Sequence[Library],
    settings: Settings,
    say: Callable[[str], None],
    limit: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Record]:
    """Peak memory of each library's fit on one data set.

    A process that takes more than ``limit`` seconds is terminated, and its record states that.
    Processes inherit the environment of this one, unless another is given.
    """
    records = []
    with tempfile.TemporaryDirectory() as folder:
        name, task = data.name, _store(data, Path(folder))
        del data  # the fits load copies, and the largest need the memory
        for library in libraries:
            record = Record(name, library.name)
            try:
                measured = _in_fresh_process(library, folder, task, settings, limit, environment)
            except RuntimeError as error:
                record.failure = str(error)
                say(f"{name}  {library.name}  failed: {error}")
            else:
                for measure, value in measured.items():
                    record.add(measure, value)
                say(f"{name}  {library.name}  peak {measured['peak_bytes'] / 1e6:.0f} MB")
            records.append(record)
    return records


def _store(data: AnyDataset, folder: Path) -> Task:
    # Plain arrays, because a Parquet reader would leave memory behind in the child.
    if issparse(data.X_train):
        save_npz(folder / "X.npz", data.X_train, compressed=False)
    else:
        np.save(folder / "X.npy", data.X_train)
    np.save(folder / "y.npy", data.y_train)
    return data.task


def _stored_table(folder: Path) -> Table:
    sparse = folder / "X.npz"
    return load_npz(sparse) if sparse.is_file() else np.load(folder / "X.npy")


def _in_fresh_process(
    library: Library,
    folder: str,
    task: Task,
    settings: Settings,
    limit: float | None,
    environment: Mapping[str, str] | None,
) -> dict[str, float]:
    order = json.dumps(
        {"library": library.name, "folder": folder, "task": task, "settings": asdict(settings)}
    )
    try:
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory"],
            input=order,
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
            timeout=limit,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"not done in {limit:,.0f} s") from error
    if child.returncode < 0:
        raise RuntimeError(f"ended by signal {-child.returncode}")
    if child.returncode != 0:
        last = child.stderr.strip().splitlines()[-1:] or [f"exit code {child.returncode}"]
        raise RuntimeError(last[0])
    measured: dict[str, float] = json.loads(child.stdout.strip().splitlines()[-1])
    return measured


def watched_fit(library: Library, folder: Path, task: Task, settings: Settings) -> dict[str, float]:
    """Seconds and bytes of a fit; call it in a fresh process.

    ``peak_bytes`` is the peak in addition to the memory before the fit, ``process_bytes`` that of
    the whole process. In graftboost a row is then removed, because the first update may build
    state: ``updated_bytes`` is the peak of the process up to that point.
    """
    warm_up(library, task, settings)
    X, y = _stored_table(folder), np.load(folder / "y.npy")
    model = library.model(task, settings)
    with library.thread_limit(settings.threads):
        _give_back_free_memory()
        CLEAR_REFS.write_text("5")  # resets the high-water mark to the current size
        before = _status_bytes("VmRSS")
        start = time.perf_counter()
        model.fit(X, y)
        seconds, peak = time.perf_counter() - start, _status_bytes("VmHWM")
    measured = {
        "fit_seconds": seconds,
        "peak_bytes": max(0, peak - before),
        "process_bytes": peak,
    }
    if library.name == OURS:
        model.remove(0)
        measured["updated_bytes"] = _status_bytes("VmHWM")
    return measured


def peak_above_input(library: Library, folder: Path, task: Task, settings: Settings) -> int:
    """Bytes that a fit needs in addition to its input; call it in a fresh process."""
    return int(watched_fit(library, folder, task, settings)["peak_bytes"])


def goals(run: Run | None) -> list[Goal]:
    """Bytes with the state that updates need, and without it relative to LightGBM's."""
    result = []
    for name, (what, limit) in WANTED.items():
        peak = run.best(name, OURS, "peak_bytes") if run is not None else None
        result.append(
            Goal(f"memory in addition to the input, {what}", limit, {name: peak}, gigabytes)
        )
    ratio = run.ratio(LARGEST, FIXED.name, "peak_bytes", YARDSTICK) if run is not None else None
    what = f"memory relative to LightGBM's with updatable=False, {WANTED[LARGEST][0]}"
    return [*result, Goal(what, WANTED_OF_FIXED, {LARGEST: ratio}, times)]


def _give_back_free_memory() -> None:
    gc.collect()
    # glibc's free() keeps memory; a fit that reused it would seem smaller than it is.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_bytes(key: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{STATUS} has no {key}")


def _child() -> None:
    if OOM_SCORE.exists():
        OOM_SCORE.write_text("1000")  # if memory runs out, this process is killed and no other
    order = json.load(sys.stdin)
    measured = watched_fit(
        ALL_LIBRARIES[order["library"]],
        Path(order["folder"]),
        order["task"],
        Settings(**order["settings"]),
    )
    print(json.dumps(measured))


if __name__ == "__main__":
    _child()
