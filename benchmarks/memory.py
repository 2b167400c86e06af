"""Peak memory of a fit above its input.

Each fit has a fresh process, started anew rather than forked: a forked child would inherit its
parent's pages and its peak. The child imports the library, fits a few made rows, loads the arrays,
gives free memory back, resets the kernel's high-water mark, and only then fits. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.libraries import LIBRARIES, Library, warm_up
from benchmarks.results import Record
from benchmarks.settings import Settings
from datasets import ROOT, Dataset, Task, load

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")


def available() -> bool:
    """Whether this system tells a process its high-water mark and lets it be reset."""
    return STATUS.is_file() and CLEAR_REFS.exists()


def measure_memory(
    name: str, libraries: Sequence[Library], settings: Settings, say: Callable[[str], None]
) -> list[Record]:
    """Peak memory of each library's fit on one data set of the registry."""
    return measure_peaks(load(name), libraries, settings, say)


def measure_peaks(
    data: Dataset, libraries: Sequence[Library], settings: Settings, say: Callable[[str], None]
) -> list[Record]:
    """Peak memory of each library's fit on one data set."""
    records = []
    with tempfile.TemporaryDirectory() as folder:
        name, task = data.name, _store(data, Path(folder))
        del data  # the fits have copies of their own, and the largest leave little room
        for library in libraries:
            record = Record(name, library.name)
            try:
                record.add("peak_bytes", _in_fresh_process(library, folder, task, settings))
            except RuntimeError as error:
                record.failure = str(error)
                say(f"{name}  {library.name}  failed: {error}")
            else:
                say(f"{name}  {library.name}  peak {record.samples['peak_bytes'][0] / 1e6:.0f} MB")
            records.append(record)
    return records


def _store(data: Dataset, folder: Path) -> Task:
    # As plain arrays, so that the child needs no reader whose leftovers would blur the figure.
    np.save(folder / "X.npy", data.X_train)
    np.save(folder / "y.npy", data.y_train)
    return data.task


def _in_fresh_process(library: Library, folder: str, task: Task, settings: Settings) -> int:
    order = json.dumps(
        {"library": library.name, "folder": folder, "task": task, "settings": asdict(settings)}
    )
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"],
        input=order,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if child.returncode != 0:
        last = child.stderr.strip().splitlines()[-1:] or [f"exit code {child.returncode}"]
        raise RuntimeError(last[0])
    return int(child.stdout.strip().splitlines()[-1])


def peak_above_input(library: Library, folder: Path, task: Task, settings: Settings) -> int:
    """Bytes that a fit needs on top of what is there before it; call it in a fresh process."""
    warm_up(library, task, settings)
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    model = library.model(task, settings)
    with library.thread_limit(settings.threads):
        _give_back_free_memory()
        CLEAR_REFS.write_text("5")  # the high-water mark falls to the present size
        before = _status_bytes("VmRSS")
        model.fit(X, y)
        return max(0, _status_bytes("VmHWM") - before)


def _give_back_free_memory() -> None:
    gc.collect()
    # glibc's free() keeps memory for later; a fit that reused it would look smaller than it is.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_bytes(key: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{STATUS} has no {key}")


def _child() -> None:
    order = json.load(sys.stdin)
    peak = peak_above_input(
        LIBRARIES[order["library"]],
        Path(order["folder"]),
        order["task"],
        Settings(**order["settings"]),
    )
    print(peak)


if __name__ == "__main__":
    _child()
