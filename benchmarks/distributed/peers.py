"""lightgbm.dask and xgboost.dask: seconds, test losses, and what happens when a worker ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable

from benchmarks.distributed.rows import Rows
from benchmarks.results import Record
from benchmarks.settings import Settings

LIBRARIES = ("lightgbm.dask", "xgboost.dask")
LIMIT = 120  # seconds, after which a fit counts as hanging


def measure_peers(rows: Rows, settings: Settings, say: Callable[[str], None]) -> list[Record]:
    """Fit each library alone and with two workers, and once more with one that is killed."""
    records = []
    for library in LIBRARIES:
        record = Record(rows.name, library, case={"shards": 2})
        found, failure = _run(library, rows.name, settings, 0)
        if found is None:
            record.failure = failure
            records.append(record)
            continue
        for measure, value in found.items():
            record.add(measure, value)
        _, failure = _run(library, rows.name, settings, found["seconds"] / 2)
        record.case["killed"] = failure or "completes"
        say(
            f"{rows.name}  {library}: {found['seconds']:.2f} s, loss {found['loss']:.6f} (one "
            f"process {found['local_loss']:.6f}); a worker killed: {record.case['killed']}"
        )
        records.append(record)
    return records


def _run(
    library: str, name: str, settings: Settings, seconds_to_kill: float
) -> tuple[dict[str, float] | None, str | None]:
    # In a process of its own, which can be ended if it hangs.
    command = [sys.executable, "-m", "benchmarks.distributed.peer_fit", library, name]
    command += [str(settings.leaves), str(settings.iterations), str(seconds_to_kill)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return None, f"hangs (ended after {LIMIT} s)"
    if done.returncode:
        kinds = re.findall(r"^[\w.]*(?:Error|Exception)\b", done.stderr, re.MULTILINE)
        return None, f"raises {kinds[-1].split('.')[-1] if kinds else 'an error'}"
    return json.loads(done.stdout.splitlines()[-1]), None
