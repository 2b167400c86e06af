"""What a cluster would take, computed from what this machine takes.

``python -m benchmarks.distributed.simulation`` measures the seconds per row and round and the bytes
per round of made tables, computes with them what 1, 2 and 4 shards take on this machine, runs these
for comparison, and prints what many machines would take, for several networks.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.markdown import in_bytes, in_seconds, table

FAN_IN = 4  # shards whose answers are added up by one


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes
    ----------
    per_row, per_value : float
        Seconds of one core, for each row and tree, and for each value of it.
    rounds_per_tree, bytes_per_feature : float
        Rounds, and bytes that a shard answers with in a round, for each feature.
    per_round : float
        Seconds that the node half takes for each feature in a round.
    booking : float
        Seconds for each changed row.
    bytes_per_row : float
        What a shard sends of a row that is removed.
    rows_regrown : float
        Rows regrown after 0.1% were removed, relative to all rows in all trees.
    trees : int
        The number of trees.
    """

    per_row: float
    per_value: float
    rounds_per_tree: float
    bytes_per_feature: float
    per_round: float
    booking: float
    bytes_per_row: float
    rows_regrown: float
    trees: int = 100


@dataclass(frozen=True)
class Cluster:
    """Machines and the network between them."""

    machines: int
    cores: int  # of each
    latency: float  # seconds of a call
    bandwidth: float  # bytes per second, of each machine

    def round(self, n_bytes: float) -> float:
        """Return the seconds of a round in which each machine answers with so many bytes."""
        levels = max(1, math.ceil(math.log(max(self.machines, 2), FAN_IN)))
        senders = min(self.machines, FAN_IN)
        return levels * (self.latency + senders * n_bytes / self.bandwidth)


def seconds_of_fit(costs: Costs, cluster: Cluster, rows: float, features: int) -> float:
    """Return the seconds of a fit, without starting processes and reading rows."""
    work = rows * costs.trees * (costs.per_row + features * costs.per_value)
    in_round = cluster.round(costs.bytes_per_feature * features) + costs.per_round * features
    rounds = costs.trees * costs.rounds_per_tree
    return work / (cluster.machines * cluster.cores) + rounds * in_round


def seconds_of_row(costs: Costs, cluster: Cluster) -> float:
    """Return the seconds of removing one row, if nothing has to be regrown."""
    return 3 * cluster.round(costs.bytes_per_row) + costs.booking


def seconds_of_share(
    costs: Costs, cluster: Cluster, rows: float, features: int, share: float = 0.001
) -> float:
    """Return the seconds of removing a share of the rows."""
    removed = share * rows
    fetched = removed * costs.bytes_per_row / cluster.bandwidth  # all reach the node half
    booked = removed * costs.booking / cluster.cores
    fit = seconds_of_fit(costs, cluster, rows, features)
    rounds = costs.trees * costs.rounds_per_tree * cluster.round(costs.bytes_per_feature * features)
    return fetched + booked + costs.rows_regrown * fit + rounds


# --- measuring ------------------------------------------------------------------------------------


def made(rows: int, features: int) -> tuple[Any, Any]:
    """Return a made table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    score = X[:, :5].sum(axis=1) + X[:, 0] * X[:, 1]
    return X, (score + rng.normal(size=rows) > 0).astype(int)


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(rows: int, features: tuple[int, int]) -> Costs:
    """Measure tables with few and with many features, on one core."""
    from graftboost import GraftBoostClassifier

    per_row_and_tree, traffic, reports = [], [], []
    for n in features:
        X, y = made(rows, n)
        model = GraftBoostClassifier(n_jobs=1)
        seconds = min(_seconds(lambda: model.fit(X, y)) for _ in range(2))  # noqa: B023
        trees = model.n_iter_
        per_row_and_tree.append(seconds / (rows * trees))
        booked = model.remove(np.arange(0, rows, 1000), regrow=False)
        model.regrow(fidelity=0.0)
        regrown = model.remove(np.arange(1, rows, 1000))
        reports.append((booked, regrown))
        traffic.append(_traffic(X, y))
    per_value = (per_row_and_tree[1] - per_row_and_tree[0]) / (features[1] - features[0])
    rounds, n_bytes, node_half = traffic[1]
    booked, regrown = reports[1]
    removed = len(booked.removed_ids)
    return Costs(
        per_row=per_row_and_tree[0] - features[0] * per_value,
        per_value=per_value,
        rounds_per_tree=rounds / trees,
        bytes_per_feature=n_bytes / rounds / features[1],
        per_round=node_half / rounds / features[1],
        booking=booked.seconds["total"] / removed,
        bytes_per_row=trees * 10 + 2 * features[1],
        rows_regrown=regrown.rows_regrown / (rows * trees),
        trees=trees,
    )


def _traffic(X: Any, y: Any) -> tuple[int, float, float]:
    """Return rounds, bytes of one shard, and seconds of the node half, of a fit on two shards."""
    from graftboost import GraftBoostClassifier
    from graftboost.distributed.coordinator import Coordinator
    from graftboost.distributed.folder import LocalFolder
    from graftboost.distributed.shards import ShardsInProcess
    from graftboost.distributed.sources import GivenRows, RawRows

    class Host:
        def open(self, n_shards: int, generation: str) -> ShardsInProcess:
            self.shards = Timed(n_shards, folder.inside(generation))
            return self.shards

        def close_others(self, generation: str) -> None:
            pass

    class Timed(ShardsInProcess):
        seconds = 0.0

        def call(self, index: int, method: str, *arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return super().call(index, method, *arguments)
            finally:
                self.seconds += time.perf_counter() - start

    with tempfile.TemporaryDirectory() as path:
        folder, host = LocalFolder(Path(path)), Host()
        coordinator = Coordinator(folder, host)
        half = len(y) // 2
        sources = [GivenRows(RawRows(X[:half], y[:half])), GivenRows(RawRows(X[half:], y[half:]))]
        seconds = _seconds(lambda: coordinator.fit("", GraftBoostClassifier(n_jobs=1), sources))
        traffic = coordinator.traffic
        return traffic.n_rounds, traffic.n_bytes_received / 2, seconds - host.shards.seconds


def measured_fit(X: Any, y: Any, n_shards: int) -> float:
    """Return the seconds of a fit on shards of Ray, without starting them and reading rows."""
    from graftboost.distributed import RayGraftBoostClassifier

    def seconds(n_trees: int) -> float:
        model.set_params(n_estimators=n_trees)
        return min(_seconds(lambda: model.fit(X, y)) for _ in range(2))

    with tempfile.TemporaryDirectory() as folder:
        model = RayGraftBoostClassifier(n_shards=n_shards, storage=folder, n_estimators=1)
        model.fit(X, y)  # starts the node half
        of_one_tree = seconds(1)
        whole = seconds(100)
        model.shutdown()
    return whole - of_one_tree


def main() -> None:
    """Print the tables."""
    from graftboost.distributed.local_cluster import local_cluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16, help="of each machine")
    parser.add_argument("--latencies", default="0.0002,0.001,0.005", help="seconds of a call")
    parser.add_argument("--bandwidths", default="1.25e8,1.25e9", help="bytes per second")
    parser.add_argument(
        "--made-rows", type=int, default=300_000, help="of the tables measured here"
    )
    args = parser.parse_args()
    costs = measure(args.made_rows, (10, 100))
    print(
        f"A row takes {1e9 * costs.per_row:.0f} ns in each tree and {1e9 * costs.per_value:.2f} ns "
        f"for each value. A tree takes {costs.rounds_per_tree:.1f} rounds, in which a shard sends "
        f"{in_bytes(costs.bytes_per_feature)} for each feature.\n"
    )
    checked = []
    X, y = made(args.made_rows, args.features)
    with local_cluster(2):
        for n_shards in (1, 2, 4):
            # Shards share two cores, and memory is the network.
            here = Cluster(n_shards, 1, 0.0015, 1e9)
            expected = seconds_of_fit(costs, here, args.made_rows, args.features)
            expected *= max(1.0, n_shards / 2)
            found = measured_fit(X, y, n_shards)
            checked.append(
                [str(n_shards), in_seconds(expected), in_seconds(found), f"{found / expected:.2f}"]
            )
    print(table(["shards here", "computed", "measured", "ratio"], checked), "\n")
    lines = []
    for latency in map(float, args.latencies.split(",")):
        for bandwidth in map(float, args.bandwidths.split(",")):
            there = Cluster(args.machines, args.cores, latency, bandwidth)
            lines.append(
                [
                    in_seconds(latency),
                    f"{in_bytes(bandwidth)}/s",
                    in_seconds(seconds_of_fit(costs, there, args.rows, args.features)),
                    in_seconds(seconds_of_row(costs, there)),
                    in_seconds(seconds_of_share(costs, there, args.rows, args.features)),
                ]
            )
    print(f"{args.rows:.0e} rows x {args.features} features on {args.machines} machines:\n")
    print(table(["latency", "bandwidth", "fit", "one row out", "0.1% out"], lines))


if __name__ == "__main__":
    main()
