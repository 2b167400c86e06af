"""Our distributed models against the local one: the same model, seconds, traffic and memory."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import psutil

from benchmarks.distributed.rows import Rows
from benchmarks.libraries import OURS
from benchmarks.results import Record
from benchmarks.settings import Settings

SHARDS = (2, 4)
N_REMOVED = 20


def measure_ours(
    rows: Rows, settings: Settings, repeats: int, say: Callable[[str], None]
) -> list[Record]:
    """Fit a local model and distributed ones in turns, and remove rows from each."""
    from graftboost import GraftBoostClassifier
    from graftboost.distributed.local_cluster import local_cluster

    options = {"n_estimators": settings.iterations, "max_leaf_nodes": settings.leaves}
    local = Record(rows.name, OURS, case={"shards": 1})
    records = [local, *(Record(rows.name, OURS, case={"shards": n}) for n in SHARDS)]
    with local_cluster(settings.threads):
        for _ in range(repeats):
            model = GraftBoostClassifier(**options, n_jobs=settings.threads)
            start = time.perf_counter()
            model.fit(rows.X, rows.y)
            local.add("fit_seconds", time.perf_counter() - start)
            share = _bytes_of_rows(model)
            for record in records[1:]:
                _measure_shards(record, rows, options, share)
            _remove(local, model)
            for record in records[1:]:
                same = [value == _number(model) for value in record.samples.pop("digest")]
                record.add("is_same", float(all(same)))
    for record in records:
        say(
            f"{rows.name}  {record.case['shards']} shards: fit {record.best('fit_seconds'):.2f} s, "
            f"one row {1e3 * (record.median('remove_seconds') or 0):.1f} ms"
        )
    return records


def _measure_shards(
    record: Record, rows: Rows, options: dict[str, Any], bytes_of_rows: int
) -> None:
    from graftboost.distributed import RayGraftBoostClassifier

    n_shards = int(record.case["shards"])
    with tempfile.TemporaryDirectory() as folder:
        model = RayGraftBoostClassifier(**options, n_shards=n_shards, storage=folder)
        start = time.perf_counter()
        model.fit(rows.X, rows.y)
        record.add("fit_seconds", time.perf_counter() - start)
        traffic = model.traffic_
        record.add("rounds", traffic.n_rounds)
        record.add("bytes_sent", traffic.n_bytes_sent)
        record.add("bytes_received", traffic.n_bytes_received)
        used = max(_memory(process) for process in _shards()) - _memory_without_rows(folder)
        record.add("memory_of_share", used / (bytes_of_rows / n_shards))
        _remove(record, model)
        record.add("digest", _number(model.to_local()))
        model.shutdown()


def _remove(record: Record, model: Any) -> None:
    """Remove rows one by one; the first time differs, because an index is built."""
    for row in range(N_REMOVED):
        start = time.perf_counter()
        model.remove([row * 37])
        record.add("remove_seconds", time.perf_counter() - start)


def _number(model: Any) -> float:
    """Return the beginning of a model's digest, as a number that JSON can store."""
    from graftboost.store.digest import digest

    return float(int(digest(model._engine_model)[:12], 16))


def _bytes_of_rows(model: Any) -> int:
    """Return how much memory the rows of a local model take, with what they recorded."""
    from graftboost.persistence.model_file import engine_contents

    arrays = engine_contents(model._engine_model, state=True, room=False)[1]
    of_rows = ("row_", "tree_leaf_ids", "tree_recorded")
    return sum(
        pieces.size * pieces.dtype.itemsize
        for name, pieces in arrays.items()
        if name.startswith(of_rows)
    )


def _shards() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "ray::ShardActor" in " ".join(process.cmdline()):
                found.append(process)
    return found


def _memory(process: psutil.Process) -> int:
    return int(process.memory_full_info().uss)


def _memory_without_rows(folder: str) -> int:
    """Return what the process of a shard takes that was fitted to a few rows."""
    from graftboost.distributed import RayGraftBoostClassifier

    there = {process.pid for process in _shards()}
    model = RayGraftBoostClassifier(n_shards=2, storage=folder, n_estimators=1)
    model.fit([[0.0], [1.0]] * 30, [0, 1] * 30)
    used = max(_memory(process) for process in _shards() if process.pid not in there)
    model.shutdown()
    return used
