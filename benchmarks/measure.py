"""Fit time, predict time and test scores."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import OURS, YARDSTICK, Library, warm_up
from benchmarks.results import Record
from benchmarks.settings import Settings
from datasets import AnyDataset, Target

PREDICTIONS = 3  # per fit, because a single prediction is short and noisy
# Libraries without goals take most of the time: they have two turns, or one if a fit takes long.
OTHER_TURNS = 2
LONG = 2.0  # seconds


def measure(
    data: AnyDataset,
    libraries: Sequence[Library],
    settings: Settings,
    repeats: int,
    say: Callable[[str], None],
) -> list[Record]:
    """Time every library on one data set, in turns.

    The turns are A B C A B C, not A A B B C C, so that a slow moment of a shared machine affects
    all of them. Libraries other than ours and LightGBM have fewer turns. A library that raises is
    skipped in later turns, and its record states why.
    """
    records = {library.name: Record(data.name, library.name) for library in libraries}
    for turn in range(1, repeats + 1):
        for library in libraries:
            record = records[library.name]
            turns = repeats
            if library.name not in (OURS, YARDSTICK):
                turns = 1 if (record.best("fit_seconds") or 0) > LONG else min(repeats, OTHER_TURNS)
            if record.failure or turn > turns:
                continue
            head = f"{data.name}  {library.name}  {turn}/{turns}"
            try:
                if turn == 1:
                    warm_up(library, data.task, settings)
                _one_turn(library, data, settings, record)
            except Exception as error:  # a library may raise anything; the others continue
                record.failure = f"{type(error).__name__}: {error}"
                say(f"{head}  failed: {record.failure}")
            else:
                say(
                    f"{head}  fit {record.samples['fit_seconds'][-1]:.3f} s"
                    f"  predict {min(record.samples['predict_seconds'][-PREDICTIONS:]):.4f} s"
                )
    return list(records.values())


def _one_turn(library: Library, data: AnyDataset, settings: Settings, record: Record) -> None:
    with library.thread_limit(settings.threads):
        model = library.model(data.task, settings)
        gc.collect()
        start = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        record.add("fit_seconds", time.perf_counter() - start)
        for _ in range(PREDICTIONS):
            start = time.perf_counter()
            predicted = library.predict(model, data.X_test, data.task, settings)
            record.add("predict_seconds", time.perf_counter() - start)
    if "error" not in record.samples and "squared_error" not in record.samples:
        for name, value in scores(data, predicted).items():
            record.add(name, value)


def scores(data: AnyDataset, predicted: NDArray[np.floating[Any]]) -> dict[str, float]:
    """Test error and log loss, or the mean squared error.

    Examples
    --------
    >>> from datasets import Dataset
    >>> X = np.zeros((2, 1), dtype=np.float32)
    >>> data = Dataset("two rows", "regression", X, np.zeros(2), X, np.array([1.0, 3.0]))
    >>> scores(data, np.array([1.0, 1.0]))
    {'squared_error': 2.0}
    """
    if data.task == "regression":
        return {"squared_error": float(np.mean((predicted - data.y_test) ** 2))}
    return {
        "error": float(np.mean(predicted.argmax(axis=1) != data.y_test)),
        "log_loss": log_loss(predicted, data.y_test),
    }


def log_loss(predicted: NDArray[np.floating[Any]], y: Target) -> float:
    """Mean log loss of class probabilities."""
    return float(np.mean(log_losses(predicted, y)))


def log_losses(predicted: NDArray[np.floating[Any]], y: Target) -> NDArray[np.float64]:
    """Log loss of each row."""
    of_true_class = predicted[np.arange(len(predicted)), y.astype(np.int64)]
    # The same floor for all, because some libraries return float32, which rounds to 0 earlier.
    floor = float(np.finfo(np.float32).eps)
    return np.asarray(-np.log(np.maximum(of_true_class.astype(np.float64), floor)))
