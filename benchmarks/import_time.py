"""Import time of the estimators, compared with ``import sklearn.ensemble``.

``import graftboost`` alone loads nothing until an estimator is used, so it is not measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

from benchmarks.results import Record

OURS, YARDSTICK = "graftboost.estimators", "sklearn.ensemble"

# Timed inside the new interpreter, so that its start is in neither figure.
PROGRAM = """
import time
start = time.perf_counter()
from {module} import *
print(time.perf_counter() - start)
"""


def measure_imports(repeats: int, say: Callable[[str], None]) -> list[Record]:
    """Import both modules in fresh interpreters, in turns, after one import that is excluded.

    The first import compiles bytecode into a folder of our own, so that it does not matter whether
    the installed packages already have theirs.
    """
    records = [Record("import", module) for module in (OURS, YARDSTICK)]
    with tempfile.TemporaryDirectory() as bytecode:
        for turn in range(repeats + 1):
            for record in records:
                if record.failure is None:
                    _one_turn(record, turn, repeats, bytecode, say)
    return records


def _one_turn(
    record: Record, turn: int, repeats: int, bytecode: str, say: Callable[[str], None]
) -> None:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=record.library)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    head = f"import {record.library}"
    if child.returncode != 0:
        last = child.stderr.strip().splitlines()[-1:] or [f"exit code {child.returncode}"]
        record.failure = last[0]
        say(f"{head}  failed: {record.failure}")
    elif turn == 0:
        say(f"{head}  compiled")
    else:
        record.add("import_seconds", float(child.stdout))
        say(f"{head}  {turn}/{repeats}  {record.samples['import_seconds'][-1]:.3f} s")
