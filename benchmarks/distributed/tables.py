"""The tables of distributed models."""

from __future__ import annotations

from benchmarks.distributed.ours import SHARDS
from benchmarks.distributed.peers import LIBRARIES
from benchmarks.goal import Goal, times
from benchmarks.libraries import OURS
from benchmarks.markdown import in_bytes, in_seconds, table
from benchmarks.results import Record, Run

MOVEMENT = 5.0  # seconds that a fit may take for starting processes and moving data


def text(run: Run) -> str:
    """The tables of a run."""
    ours, theirs = [], []
    for name in run.data_names():
        local = run.find(name, OURS, shards=1)
        for n_shards in SHARDS:
            record = run.find(name, OURS, shards=n_shards)
            if record is None or local is None:
                continue
            ours.append([name, str(n_shards), *_cells(record, local)])
        for library in LIBRARIES:
            peer = run.find(name, library)
            if peer is not None:
                theirs.append([name, library, *_peer_cells(peer)])
    heads = ["data set", "shards", "same model", "fit", "one process", "beyond 1.6 times"]
    heads += ["rounds", "sent", "received", "one row, median (most)", "memory of share"]
    parts = [table(heads, ours)]
    if theirs:
        heads = ["data set", "library", "two workers", "one process", "test log loss"]
        heads += ["of one process", "a worker is killed"]
        parts.append(table(heads, theirs))
    return "\n\n".join(parts)


def _cells(record: Record, local: Record) -> list[str]:
    fit, alone = record.best("fit_seconds") or 0, local.best("fit_seconds") or 0
    removals = record.samples["remove_seconds"]
    return [
        "yes" if record.best("is_same") else "no",
        in_seconds(fit),
        in_seconds(alone),
        in_seconds(max(fit - 1.6 * alone, 0)),
        f"{record.best('rounds'):,.0f}",
        in_bytes(record.best("bytes_sent") or 0),
        in_bytes(record.best("bytes_received") or 0),
        f"{in_seconds(record.median('remove_seconds') or 0)} ({in_seconds(max(removals))})",
        f"{record.best('memory_of_share'):.2f}",
    ]


def _peer_cells(record: Record) -> list[str]:
    if record.failure:
        return [record.failure, "-", "-", "-", "-"]
    return [
        in_seconds(record.best("seconds") or 0),
        in_seconds(record.best("local_seconds") or 0),
        f"{record.best('loss'):.6f}",
        f"{record.best('local_loss'):.6f}",
        str(record.case["killed"]),
    ]


def goals(run: Run | None) -> list[Goal]:
    """Goals, with the values of the run."""

    def of(name: str, n_shards: int) -> Record | None:
        return run.find(name, OURS, shards=n_shards) if run else None

    def beyond(n_shards: int) -> float | None:
        record, local = of("flights_3m", n_shards), of("flights_3m", 1)
        fit = record.best("fit_seconds") if record else None
        alone = local.best("fit_seconds") if local else None
        return fit - 1.6 * alone if fit and alone else None

    cases = [(name, n) for name in (run.data_names() if run else []) for n in SHARDS]
    rows = {f"{name}, {n}": r.median("remove_seconds") for name, n in cases if (r := of(name, n))}
    shares = {f"{name}, {n}": r.best("memory_of_share") for name, n in cases if (r := of(name, n))}
    return [
        Goal(
            "distributed fit of flights_3m: seconds beyond 1.6 times those of one process",
            MOVEMENT,
            {f"{n} shards": beyond(n) for n in SHARDS},
            in_seconds,
        ),
        Goal("distributed: one row removed, median", 0.05, rows, in_seconds),
        Goal("distributed: memory of a shard relative to its share", 1.1, shares, times),
    ]
