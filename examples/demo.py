"""A first look: train, predict, remove rows, and see what the model remembers of them.

Runs in a few seconds on data that scikit-learn ships: ``make demo``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from graftboost import GraftBoostClassifier

LEAVES, ITERATIONS = 20, 100


def best_of(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of several runs, in seconds, and what the last one returned."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def compare(name: str, X: np.ndarray, y: np.ndarray) -> GraftBoostClassifier:
    """Train both libraries on the same rows and print what came out."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    print(f"\n{name}: {len(X_train)} rows, {X.shape[1]} features, {len(np.unique(y))} classes")
    print(f"  {'':<26}{'fit':>9}{'predict':>10}{'error':>9}{'log loss':>10}")
    models = {
        "graftboost": GraftBoostClassifier(max_leaf_nodes=LEAVES, n_estimators=ITERATIONS),
        "HistGradientBoosting": HistGradientBoostingClassifier(
            max_leaf_nodes=LEAVES, max_iter=ITERATIONS, early_stopping=False
        ),
    }
    for label, model in models.items():
        fit_seconds, _ = best_of(3, lambda model=model: model.fit(X_train, y_train))
        predict_seconds, chances = best_of(3, lambda model=model: model.predict_proba(X_test))
        error = np.mean(model.classes_[chances.argmax(axis=1)] != y_test)
        print(
            f"  {label:<26}{fit_seconds:>7.2f} s{1e3 * predict_seconds:>7.1f} ms"
            f"{error:>9.2%}{log_loss(y_test, chances):>10.4f}"
        )
    return models["graftboost"]


def show_memory_of_rows(X: np.ndarray, y: np.ndarray) -> None:
    """Order and threads leave no trace in a model, and all its sums can be counted again."""
    order = np.random.default_rng(0).permutation(len(y))
    ids = np.arange(len(y))
    one = GraftBoostClassifier(n_jobs=1).fit(X, y, row_ids=ids)
    two = GraftBoostClassifier(n_jobs=2).fit(X[order], y[order], row_ids=ids[order])
    same = np.array_equal(one.decision_function(X), two.decision_function(X))
    print("\nThe same rows in another order, on another number of threads:")
    print(f"  predictions are the same to the last bit: {same}")
    seconds, _ = best_of(1, one.check_state)
    print(f"  every sum counted again from the {one.n_rows_} rows held: equal ({seconds:.2f} s)")


def show_removal(X: np.ndarray, y: np.ndarray) -> None:
    """Take five rows with wrong labels out of a model, and compare with one that never saw them."""
    wrong = np.arange(100, 600, 100)
    labels = y.copy()
    labels[wrong] = (y[wrong] + 1) % 10
    model = GraftBoostClassifier().fit(X, labels)

    def belief(model: GraftBoostClassifier) -> float:
        return float(model.predict_proba(X[wrong])[np.arange(5), labels[wrong]].mean())

    before = belief(model)
    report = model.remove(wrong)
    model.check_state()
    retrained = GraftBoostClassifier().fit(np.delete(X, wrong, axis=0), np.delete(y, wrong))
    print("\nFive digits with wrong labels leave the model:")
    print("  " + str(report).replace("\n", "\n  "))
    print("  probability that it gives to the wrong labels")
    print(f"    before the removal     {before:.4f}   (what a model left alone goes on saying)")
    print(f"    after the removal      {belief(model):.4f}")
    print(f"    trained without them   {belief(retrained):.4f}")


def main() -> None:
    """Run the demo."""
    compare("Digits", *load_digits(return_X_y=True))
    X, y = load_breast_cancer(return_X_y=True)
    compare("Breast cancer", X, y)
    show_memory_of_rows(X, y)
    show_removal(*load_digits(return_X_y=True))


if __name__ == "__main__":
    main()
