"""One fit of a peer, alone and with two workers of Dask; prints what it measured as JSON.

``python -m benchmarks.distributed.peer_fit LIBRARY DATA LEAVES ITERATIONS SECONDS`` kills a worker
SECONDS after the distributed fit has begun, unless that is 0.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.distributed.rows import load


def _lightgbm(leaves: int, iterations: int) -> tuple[Any, Any]:
    import lightgbm

    options = {"num_leaves": leaves, "n_estimators": iterations, "verbose": -1}
    return lightgbm.LGBMClassifier(**options, n_jobs=2), lightgbm.DaskLGBMClassifier(**options)


def _xgboost(leaves: int, iterations: int) -> tuple[Any, Any]:
    import xgboost
    from xgboost import dask

    options = {
        "max_leaves": leaves,
        "grow_policy": "lossguide",
        "max_depth": 0,
        "tree_method": "hist",
        "n_estimators": iterations,
        "learning_rate": 0.1,
    }
    return xgboost.XGBClassifier(**options, n_jobs=2), dask.DaskXGBClassifier(**options)


def _probabilities(model: Any, X: Any) -> Any:
    if hasattr(model, "to_local"):
        return model.to_local().predict_proba(X)
    import xgboost

    found = model.get_booster().predict(xgboost.DMatrix(X))
    return np.column_stack([1 - found, found]) if found.ndim == 1 else found


def _kill_later(process: int, seconds: float) -> None:
    def kill() -> None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def main(library: str, name: str, leaves: int, iterations: int, seconds_to_kill: float) -> None:
    """Fit and print."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster
    from sklearn.metrics import log_loss

    rows = load(name)
    make = _lightgbm if library == "lightgbm.dask" else _xgboost
    alone, together = make(leaves, iterations)
    found = {}
    if not seconds_to_kill:
        start = time.perf_counter()
        alone.fit(rows.X, rows.y)
        found["local_seconds"] = time.perf_counter() - start
        found["local_loss"] = log_loss(rows.y_test, alone.predict_proba(rows.X_test))
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
        silence_logs=50,
    )
    with cluster, Client(cluster) as client:
        half = len(rows.y) // 2 + 1
        start = time.perf_counter()
        X = client.persist(da.from_array(rows.X, chunks=(half, rows.X.shape[1])))
        y = client.persist(da.from_array(rows.y, chunks=half))
        if seconds_to_kill:
            _kill_later(next(iter(client.run(os.getpid).values())), seconds_to_kill)
        together.client = client
        together.fit(X, y)
        found["seconds"] = time.perf_counter() - start
        found["loss"] = log_loss(rows.y_test, _probabilities(together, rows.X_test))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
