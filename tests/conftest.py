"""Data and comparisons that several test files share."""

import os
import pickle

import numpy as np
import pytest
from numpy.random import Generator, default_rng

# Ray listens on loopback only; it reads this when it is imported, which any test may do.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


@pytest.fixture
def rng() -> Generator:
    return default_rng(0)


def _features(rng):
    X = rng.normal(size=(300, 5))
    X[rng.random(300) < 0.1, 1] = np.nan
    return X


@pytest.fixture
def two_classes(rng):
    """300 rows, one column of which has missing values, and labels 0 and 1."""
    X = _features(rng)
    y = (X[:, 0] + np.nan_to_num(X[:, 1], nan=1.0) + rng.normal(scale=0.5, size=300) > 0).astype(
        int
    )
    return X, y


@pytest.fixture
def three_classes(rng):
    X = _features(rng)
    return X, np.digitize(X[:, 0] + rng.normal(scale=0.3, size=300), [-0.5, 0.5])


@pytest.fixture
def numeric_target(rng):
    X = _features(rng)
    return X, 3.0 * X[:, 0] - np.nan_to_num(X[:, 1]) + rng.normal(scale=0.1, size=300)


@pytest.fixture
def assert_same_model():
    """Compare two fitted estimators bit for bit: bins, trees, rows and state."""

    def compare(first, second):
        assert pickle.dumps(first._engine_model) == pickle.dumps(second._engine_model)

    return compare
