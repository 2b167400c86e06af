"""Small models of every kind, and the rows that are added to them.

They are as small as possible while their updates still regrow nodes in place, because tests let
every allocation of an operation fail.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor

N_ROWS = 150
N_ADDED = 12
N_SPARSE_COLUMNS = 60
RARE = range(40, 60)  # columns with fewer values than a leaf has rows
SMALL: dict[str, Any] = {
    "n_estimators": 3,
    "max_leaf_nodes": 5,
    "min_samples_leaf": 4,
    "learning_rate": 0.3,
    "n_jobs": 1,
}


@dataclass(frozen=True)
class Rows:
    """Rows, with a weight each."""

    X: Any
    y: Any
    weight: Any


@dataclass(frozen=True)
class Specimen:
    """A fitted model, the rows that it was fitted to and rows that it has not seen."""

    model: Any
    fitted: Rows
    added: Rows
    weighted: bool


@cache
def make_rows(seed: int, n_rows: int, loss: str, *, sparse: bool = False) -> Rows:
    """Rows with missing values and a categorical column, or mostly zeros."""
    rng = np.random.default_rng(seed)
    X, score = _sparse_table(rng, n_rows) if sparse else _dense_table(rng, n_rows)
    score = score + rng.normal(scale=0.4, size=n_rows)
    weight = rng.uniform(0.5, 2.0, n_rows)
    return Rows(X, _target(score, loss), weight)


def _dense_table(rng: np.random.Generator, n_rows: int) -> tuple[Any, Any]:
    X = rng.normal(size=(n_rows, 4))
    X[rng.random(n_rows) < 0.1, 2] = np.nan
    X[:, 3] = rng.integers(0, 4, n_rows)  # a category
    return X, X[:, 0] + np.nan_to_num(X[:, 2]) * 0.5 + (X[:, 3] == 1)


def _sparse_table(rng: np.random.Generator, n_rows: int) -> tuple[Any, Any]:
    share = np.full(N_SPARSE_COLUMNS, 0.15)
    share[RARE.start :] = 2 / N_ROWS
    X = np.where(rng.random((n_rows, N_SPARSE_COLUMNS)) < share, rng.normal(size=share.shape), 0.0)
    return scipy.sparse.csr_matrix(X), 2 * X[:, 0] + X[:, 1] - X[:, 2]


def _target(score: Any, loss: str) -> Any:
    if loss == "squared":
        return 10 * score
    if loss == "logistic":
        return np.where(score > 0, "yes", "no")
    return np.array(["high", "low", "middle"])[np.digitize(score, [-0.5, 0.5])]


def _specimen(
    loss: str,
    *,
    n_rows: int = N_ROWS,
    sparse: bool = False,
    weighted: bool = False,
    **parameters: Any,
) -> Specimen:
    fitted = make_rows(0, n_rows, loss, sparse=sparse)
    if not sparse:
        parameters["categorical_features"] = [3]
    Estimator = GraftBoostRegressor if loss == "squared" else GraftBoostClassifier
    model = Estimator(**{**SMALL, **parameters})
    model.fit(fitted.X, fitted.y, fitted.weight if weighted else None)
    added = make_rows(1, N_ADDED, loss, sparse=sparse)
    return Specimen(model, fitted, added, weighted)


def _loaded(name: str) -> Specimen:
    """Its state is in the pages of a file, and is checked by the first update."""
    return replace(make_specimen(name), model=graftboost.load(file_of(name)))


def _unpickled(specimen: Specimen) -> Specimen:
    return replace(specimen, model=pickle.loads(pickle.dumps(specimen.model)))


def _updated(specimen: Specimen) -> Specimen:
    """Rows were added and removed, so that it has free slots."""
    model = specimen.model
    model.update(specimen.added.X, specimen.added.y, remove=np.arange(20, 28))
    model.remove(np.arange(N_ROWS, N_ROWS + 5))
    return specimen


def _deferred(specimen: Specimen) -> Specimen:
    """Rows were added and removed, and nodes are yet to be regrown for them."""
    model, added = specimen.model, specimen.added
    model.remove(np.arange(40, 52), regrow=False)
    weight = added.weight[6:] if specimen.weighted else None
    model.add(added.X[6:], added.y[6:], weight, regrow=False)
    return specimen


LARGER: dict[str, Any] = {"n_rows": 700, "n_estimators": 8, "max_leaf_nodes": 9}

SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "logistic": lambda: _specimen("logistic"),
    "logistic, rank rule": lambda: _specimen("logistic", update_rule="rank"),
    "logistic, fixed structure": lambda: _specimen("logistic", fidelity=0.0),
    "logistic, two threads": lambda: _specimen("logistic", n_jobs=2, n_estimators=4),
    "logistic, no histograms kept": lambda: _specimen("logistic", stats_memory=0),
    "logistic, regret rule, no histograms kept": lambda: _specimen(
        "logistic", stats_memory=0, update_rule="regret", tolerance=0.0
    ),
    "logistic, larger": lambda: _specimen("logistic", **LARGER),
    "logistic, deferred": lambda: _deferred(_specimen("logistic", **LARGER)),
    "softmax": lambda: _specimen("softmax"),
    "softmax, weighted, subsample": lambda: _specimen("softmax", weighted=True, subsample=0.8),
    "softmax, larger, two threads": lambda: _specimen("softmax", n_jobs=2, **LARGER),
    "squared, deferred, no histograms kept": lambda: _deferred(
        _specimen("squared", stats_memory=0)
    ),
    "squared, weighted": lambda: _specimen("squared", weighted=True),
    "squared, subsample": lambda: _specimen(
        "squared", subsample=0.7, update_rule="regret", tolerance=0.0
    ),
    "squared, updated": lambda: _updated(_specimen("squared")),
    "squared, loaded": lambda: _loaded("squared, subsample"),
    "sparse logistic": lambda: _specimen("logistic", sparse=True),
    "sparse logistic, fixed structure": lambda: _specimen("logistic", sparse=True, fidelity=0.0),
    "sparse logistic, regret rule": lambda: _specimen(
        "logistic", sparse=True, update_rule="regret", tolerance=0.0
    ),
    "sparse logistic, two threads": lambda: _specimen("logistic", sparse=True, n_jobs=2),
    "sparse softmax, weighted, deferred": lambda: _deferred(
        _specimen("softmax", sparse=True, weighted=True)
    ),
    "sparse softmax, weighted": lambda: _specimen("softmax", sparse=True, weighted=True),
    "sparse squared": lambda: _specimen(
        "squared", sparse=True, update_rule="regret", tolerance=0.0
    ),
    "sparse squared, loaded": lambda: _loaded("sparse squared"),
    "sparse squared, unpickled": lambda: _unpickled(_specimen("squared", sparse=True)),
}

# Those with another rule than "fidelity" whose names do not say so.
BY_REGRET = {"squared, subsample", "squared, loaded", "sparse squared", "sparse squared, loaded"}


def make_specimen(name: str) -> Specimen:
    """Make a specimen, always the same one."""
    return SPECIMENS[name]()


@cache
def file_of(name: str) -> Path:
    """Return a file to which the model of a specimen has been saved."""
    path = Path(tempfile.mkdtemp()) / "model"
    make_specimen(name).model.save(path)
    return path
