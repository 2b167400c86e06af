"""Millions of rows, nearly all of which share one cell, unweighted and weighted.

Without weights, a histogram packs hessians and row counts into one integer; with weights, it does
not. The same rows, each with weight 1, must give the same model either way.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.goal import Goal, percent, times
from benchmarks.libraries import OURS
from benchmarks.markdown import four_digits, in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.settings import Settings
from graftboost import GraftBoostClassifier, GraftBoostRegressor

KIND = "many-rows"
ROWS, QUICK_ROWS = 5_000_000, 50_000
CASES = ("unweighted", "weighted")


def make_rows(
    n_rows: int,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]:
    """Four columns, the first of which is 97% zeros; a number and a class per row."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4), dtype=np.float32)
    X[rng.random(n_rows) < 0.97, 0] = 0
    score = X[:, 1] + np.sin(X[:, 2]) + (X[:, 0] > 0)
    noise = rng.standard_normal(n_rows)
    return X, score + 0.1 * noise, (score + noise > 0).astype(np.int64)


def measure_many_rows(
    settings: Settings, repeats: int, quick: bool, say: Callable[[str], None]
) -> list[Record]:
    """Fit the same rows without weights and with weights of 1, in turns."""
    n_rows = QUICK_ROWS if quick else ROWS
    X, numbers, classes = make_rows(n_rows)
    records: list[Record] = []
    for Estimator, y in ((GraftBoostRegressor, numbers), (GraftBoostClassifier, classes)):
        of_case = {
            case: Record(
                Estimator.__name__, OURS, case={"weights": case, "rows": n_rows, "columns": 4}
            )
            for case in CASES
        }
        predictions = {}
        for _ in range(repeats):
            for case, record in of_case.items():
                model = Estimator(
                    n_estimators=settings.iterations,
                    learning_rate=settings.shrinkage,
                    max_leaf_nodes=settings.leaves,
                    min_samples_leaf=settings.min_rows,
                    n_jobs=settings.threads,
                )
                weight = None if case == "unweighted" else np.ones(n_rows)
                gc.collect()
                start = time.perf_counter()
                model.fit(X, y, weight)
                record.add("fit_seconds", time.perf_counter() - start)
                record.add("wrong", 1 - model.score(X[:100_000], y[:100_000]))
                predictions[case] = model.predict(X[:100_000])
                say(f"{Estimator.__name__}, {case}: {record.samples['fit_seconds'][-1]:.2f} s")
                del model
        differing = float(np.mean(predictions["unweighted"] != predictions["weighted"]))
        of_case["unweighted"].add("differing", differing)
        records += of_case.values()
    return records


def text(run: Run) -> str:
    """The run as a table."""
    rows = []
    for record in run.records:
        seconds, wrong = record.best("fit_seconds"), record.best("wrong")
        differing = record.best("differing")
        rows.append(
            [
                record.data,
                f"{record.case['rows']:,} x {record.case['columns']}",
                str(record.case["weights"]),
                in_seconds(seconds) if seconds is not None else "-",
                four_digits(1 - wrong) if wrong is not None else "-",
                percent(differing) if differing is not None else "",
            ]
        )
    heads = ["model", "rows", "weights", "fit", "score", "different predictions"]
    return "The score is R2 or accuracy on 100,000 of the training rows.\n\n" + table(heads, rows)


def goals(run: Run | None) -> list[Goal]:
    """The same model, and not slower without weights."""
    differing: dict[str, float | None] = {}
    ratios: dict[str, float | None] = {}
    for model in ("GraftBoostRegressor", "GraftBoostClassifier"):
        of_case = {
            record.case["weights"]: record
            for record in (run.records if run is not None else ())
            if record.data == model
        }
        packed, wide = (of_case.get(case) for case in CASES)
        differing[model] = packed.best("differing") if packed else None
        seconds = [record.best("fit_seconds") if record else None for record in (packed, wide)]
        ratios[model] = seconds[0] / seconds[1] if seconds[0] and seconds[1] else None
    return [
        Goal("different predictions with weights of 1, 5,000,000 x 4", 0.0, differing, percent),
        Goal("fit time relative to that with weights of 1, 5,000,000 x 4", 1.0, ratios, times),
    ]
