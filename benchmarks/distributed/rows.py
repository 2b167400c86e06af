"""The data sets of distributed models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import datasets

DATA = ("adult", "covtype", "flights_3m")
QUICK = ("adult",)


@dataclass(frozen=True)
class Rows:
    """Rows to train on, and rows to test on."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any


def load(name: str) -> Rows:
    """Return half of covtype, all rows of flights_3m, or the training rows of a smaller set."""
    data = datasets.load(name)
    X, y = data.X_train, data.y_train
    if name == "covtype":
        X, y = X[:290_000], y[:290_000]
    if name == "flights_3m":  # the last tenth is both trained and tested on
        X, y = np.concatenate([X, data.X_test]), np.concatenate([y, data.y_test])
    return Rows(name, X, y, data.X_test, data.y_test)
