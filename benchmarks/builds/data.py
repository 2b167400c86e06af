"""The data sets on which builds are compared."""

from __future__ import annotations

from dataclasses import replace

import datasets
from datasets import AnyDataset

HALVED = ("covtype",)  # in comparisons of speed: updates copy the model, in two processes


def load(name: str) -> AnyDataset:
    """Read or make a dense or sparse data set."""
    return datasets.load_sparse(name) if name in datasets.SPARSE else datasets.load(name)


def load_to_time(name: str) -> AnyDataset:
    """The same with half of the training rows of the largest."""
    data = load(name)
    if name not in HALVED:
        return data
    half = len(data.y_train) // 2
    return replace(data, X_train=data.X_train[:half], y_train=data.y_train[:half])
