"""The benchmark of distributed models, and what a cluster is computed to take."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.distributed import goals, text
from benchmarks.distributed.simulation import (
    Cluster,
    Costs,
    seconds_of_fit,
    seconds_of_row,
    seconds_of_share,
)
from benchmarks.libraries import OURS
from benchmarks.results import Record, new_run
from benchmarks.settings import Settings

COSTS = Costs(2e-8, 1e-9, 10, 500, 1e-6, 1e-5, 1200, 0.05)
CLUSTER = Cluster(machines=100, cores=16, latency=0.001, bandwidth=1e9)


def test_a_cluster_takes_longer_with_more_rows_and_slower_networks() -> None:
    fit = seconds_of_fit(COSTS, CLUSTER, 1e9, 100)
    work = 1e9 * 100 * (2e-8 + 100 * 1e-9) / 1600
    rounds = 1000 * (4 * (0.001 + 4 * 50_000 / 1e9) + 1e-4)
    assert abs(fit - work - rounds) < 1e-9
    assert seconds_of_fit(COSTS, CLUSTER, 2e9, 100) > fit
    assert seconds_of_fit(COSTS, replace(CLUSTER, latency=0.01), 1e9, 100) > fit
    assert seconds_of_fit(COSTS, replace(CLUSTER, machines=200), 1e9, 100) < fit
    assert seconds_of_row(COSTS, CLUSTER) < 0.1 < seconds_of_share(COSTS, CLUSTER, 1e9, 100)


def test_one_machine_has_one_level() -> None:
    assert Cluster(1, 1, 0.5, 1.0).round(0) == 0.5
    assert Cluster(4, 1, 0.5, 1.0).round(0) == 0.5
    assert Cluster(5, 1, 0.5, 1.0).round(0) == 1.0


def test_tables_and_goals() -> None:
    run = new_run("distributed", "", [], Settings(), 1)
    local = Record("flights_3m", OURS, {"fit_seconds": [5.0]}, case={"shards": 1})
    samples = {
        "fit_seconds": [12.0],
        "rounds": [1000],
        "bytes_sent": [1e6],
        "bytes_received": [1e8],
        "memory_of_share": [1.05],
        "remove_seconds": [0.01, 0.02, 0.04],
        "is_same": [1.0],
    }
    ours = Record("flights_3m", OURS, samples, case={"shards": 2})
    measured = {"seconds": [9.0], "local_seconds": [8.0], "loss": [0.4], "local_loss": [0.41]}
    peer = Record("flights_3m", "lightgbm.dask", measured, case={"shards": 2, "killed": "hangs"})
    run.records = [local, ours, peer]
    found = text(run)
    assert "| flights_3m | 2 | yes | 12 s | 5 s | 4 s | 1,000 |" in found
    assert "| flights_3m | lightgbm.dask | 9 s | 8 s | 0.400000 | 0.410000 | hangs |" in found
    beyond, row, memory = goals(run)
    assert beyond.values["2 shards"] == 4.0
    assert row.values["flights_3m, 2"] == 0.02
    assert memory.values["flights_3m, 2"] == 1.05
    assert goals(None)[0].values["2 shards"] is None
