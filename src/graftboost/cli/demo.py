"""A model forgets customers who ask for it: how fast, and how well, beside training again.

Runs in less than a minute on data that scikit-learn ships: ``make demo``.
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
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def make_customers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy copies of the breast cancer data, shuffled, and which of their labels are wrong."""
    rng = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = np.repeat(X, COPIES, axis=0), np.repeat(y, COPIES)
    X = X + X.std(axis=0) * rng.normal(size=X.shape)
    order = rng.permutation(len(y))
    wrong = rng.random(len(y)) < WRONG
    return X[order], np.where(wrong, 1 - y[order], y[order]), wrong


def lightgbm_like(model: GraftBoostClassifier) -> Any:
    """LightGBM with the same settings and threads, or None if it is not installed."""
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
    """Remove customers one by one, each from a copy of the model; the last one comes back."""
    ids = np.arange(len(y))
    customers = ids // ROWS_EACH
    # Who asks is settled before anything is measured: those with the most wrong labels.
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
    line("graftboost trained again, best of 3", f"{again:.0f}")
    rival = lightgbm_like(model)
    if rival is None:
        line("LightGBM trained again", "skipped", "lightgbm cannot be imported")
    else:
        again = best_of(3, lambda: rival.fit(X[rest], y[rest]))
        line("LightGBM trained again, best of 3", f"{again:.0f}")

    before, after, without = np.transpose(losses)
    each = (after - before) / (without - before)
    all_together = (after - before).sum() / (without - before).sum()
    print("\nForgetting, by the loss of their rows: 0 is nothing, 1 is as if never seen")
    line("left alone", "0.00", f"loss {before.mean():.3f}")
    spread = f"one by one {each.min():.2f} to {each.max():.2f}"
    line("removed in place", f"{all_together:.2f}", f"loss {after.mean():.3f}, {spread}")
    line("trained without them", "1.00", f"loss {without.mean():.3f}")

    report = updated.add(X[rows], y[rows], row_ids=rows)
    print(f"\nmodel.add(X, y, row_ids=ids)  # customer {customer} comes back")
    line("milliseconds", f"{1e3 * report.seconds['total']:.0f}")
    line(
        "loss of the rows",
        f"{loss(updated, X[rows], y[rows]):.3f}",
        f"was {losses[-1][0]:.3f}, gone {losses[-1][1]:.3f}",
    )


def loss(model: GraftBoostClassifier, X: np.ndarray, y: np.ndarray) -> float:
    """The mean log loss of some rows."""
    return float(log_loss(y, model.predict_proba(X), labels=[0, 1]))


def show_window(model: GraftBoostClassifier, X: np.ndarray, y: np.ndarray) -> None:
    """Let new rows in and the oldest out."""
    size = 20_000
    model = clone(model).fit(X[:size], y[:size])
    times = []
    for begin in range(size, size + 200, 20):
        X_new, y_new = X[begin : begin + 20], y[begin : begin + 20]
        oldest = slice(None, begin + 20 - size)
        times.append(1e3 * model.update(X_new, y_new, remove=oldest).seconds["total"])
    model.check_state()
    print("\nmodel.update(X_new, y_new, remove=oldest)  # 20 rows in, 20 out, ten times")
    line("milliseconds, median", f"{np.median(times):.0f}", f"{min(times):.0f} to {max(times):.0f}")
    line("rows held, as at the start", str(model.n_rows_), "every sum counted again: equal")


def main() -> None:
    """Run the demo."""
    X, y, wrong = make_customers()
    model = GraftBoostClassifier(max_leaf_nodes=LEAVES, n_estimators=ITERATIONS).fit(X, y)
    print(f"{len(y)} rows of {len(y) // ROWS_EACH} customers; {WRONG:.0%} of the labels are wrong.")
    show_removals(model, X, y, wrong)
    show_window(model, X, y)


if __name__ == "__main__":
    main()
