"""A demonstration: remove customers from a model, and compare with retraining.

It uses data that comes with scikit-learn and takes less than a minute: ``make demo``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss

from graftboost import GraftBoostClassifier
from graftboost.estimators.threads import thread_count

COPIES, ROWS_EACH, WRONG, ASKING = 50, 5, 0.05, 10
LEAVES, ITERATIONS = 20, 100


def best_of(repeats: int, run: Callable[[], Any]) -> float:
    """Return the shortest time of several runs, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def make_customers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shuffled noisy copies of the breast cancer data, and which labels are wrong."""
    rng = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = np.repeat(X, COPIES, axis=0), np.repeat(y, COPIES)
    X = X + X.std(axis=0) * rng.normal(size=X.shape)
    order = rng.permutation(len(y))
    wrong = rng.random(len(y)) < WRONG
    return X[order], np.where(wrong, 1 - y[order], y[order]), wrong


def lightgbm_like(model: GraftBoostClassifier) -> Any:
    """Return LightGBM with the same settings and threads, or None if it is not installed."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        return None
    return LGBMClassifier(
        n_estimators=model.n_estimators,
        learning_rate=model.learning_rate,
        num_leaves=model.max_leaf_nodes,
        min_child_samples=model.min_samples_leaf,
        n_jobs=thread_count(model.n_jobs),
        verbose=-1,
    )


def line(what: str, value: str, note: str = "") -> None:
    """Print one line of a table."""
    print(f"  {what:<36}{value:>10}  {note}".rstrip())


def show_removals(model: GraftBoostClassifier, X: np.ndarray, y: np.ndarray, wrong: Any) -> None:
    """Remove customers one by one, each from a copy of the model; add the last one again."""
    ids = np.arange(len(y))
    customers = ids // ROWS_EACH
    # The customers with the most wrong labels, selected before anything is measured.
    asking = np.argsort(-np.bincount(customers, wrong), kind="stable")[:ASKING]
    reports, losses = [], []
    for customer in asking:
        rows = ids[customers == customer]
        rest = np.delete(ids, rows)
        updated = copy.deepcopy(model)
        reports.append(updated.remove(rows))
        updated.check_state()
        retrained = clone(model).fit(X[rest], y[rest], row_ids=rest)
        losses.append([loss(m, X[rows], y[rows]) for m in (model, updated, retrained)])
    print(f"\nmodel.remove(ids)  # customer {asking[0]} asks to be forgotten")
    print("  " + str(reports[0]).replace("\n", "\n  "))

    times = [1e3 * report.seconds["total"] for report in reports]
    print(f"\n{ASKING} customers, each removed from a copy of the model, in milliseconds")
    line(
        "removed in place, median",
        f"{np.median(times):.0f}",
        f"{min(times):.0f} to {max(times):.0f}",
    )
    again = best_of(3, lambda: clone(model).fit(X[rest], y[rest], row_ids=rest))
    line("graftboost retrained, best of 3", f"{again:.0f}")
    rival = lightgbm_like(model)
    if rival is None:
        line("LightGBM retrained", "skipped", "lightgbm is not installed")
    else:
        again = best_of(3, lambda: rival.fit(X[rest], y[rest]))
        line("LightGBM retrained, best of 3", f"{again:.0f}")

    before, after, without = np.transpose(losses)
    each = (after - before) / (without - before)
    all_together = (after - before).sum() / (without - before).sum()
    print("\nForgetting, by the loss of their rows: 0 is nothing, 1 is the same as a retrain")
    line("untouched", "0.00", f"loss {before.mean():.3f}")
    spread = f"per customer {each.min():.2f} to {each.max():.2f}"
    line("removed in place", f"{all_together:.2f}", f"loss {after.mean():.3f}, {spread}")
    line("retrained", "1.00", f"loss {without.mean():.3f}")

    report = updated.add(X[rows], y[rows], row_ids=rows)
    print(f"\nmodel.add(X, y, row_ids=ids)  # customer {customer} returns")
    line("milliseconds", f"{1e3 * report.seconds['total']:.0f}")
    line(
        "loss of the rows",
        f"{loss(updated, X[rows], y[rows]):.3f}",
        f"before {losses[-1][0]:.3f}, removed {losses[-1][1]:.3f}",
    )


def loss(model: GraftBoostClassifier, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean log loss of rows."""
    return float(log_loss(y, model.predict_proba(X), labels=[0, 1]))


def show_window(model: GraftBoostClassifier, X: np.ndarray, y: np.ndarray) -> None:
    """Add new rows and remove the oldest, in a sliding window."""
    size = 20_000
    model = clone(model).fit(X[:size], y[:size])
    times = []
    for begin in range(size, size + 200, 20):
        X_new, y_new = X[begin : begin + 20], y[begin : begin + 20]
        oldest = slice(None, begin + 20 - size)
        times.append(1e3 * model.update(X_new, y_new, remove=oldest).seconds["total"])
    model.check_state()
    print("\nmodel.update(X_new, y_new, remove=oldest)  # add 20 rows, remove 20, ten times")
    line("milliseconds, median", f"{np.median(times):.0f}", f"{min(times):.0f} to {max(times):.0f}")
    line("rows in the model, as before", str(model.n_rows_), "all stored sums verified")


def main() -> None:
    """Run the demo."""
    X, y, wrong = make_customers()
    model = GraftBoostClassifier(max_leaf_nodes=LEAVES, n_estimators=ITERATIONS).fit(X, y)
    print(f"{len(y)} rows of {len(y) // ROWS_EACH} customers; {WRONG:.0%} of the labels are wrong.")
    show_removals(model, X, y, wrong)
    show_window(model, X, y)


if __name__ == "__main__":
    main()
