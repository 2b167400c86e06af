"""Small data sets and short calls of the engine for the tests in this folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from graftboost._engine import BinMap, EngineModel, FitParams, UpdateCounts
from hypothesis import strategies as st

from graftboost import reference

CLASSES = {"logistic": 2, "softmax": 3, "squared": 1}
COUNTS = (
    "refitted",
    "trees_touched",
    "nodes_checked",
    "nodes_regrown",
    "rows_regrown",
    "nodes_shifted",
    "rows_shifted",
)
LOSSES = list(CLASSES)
# Arguments of `make_data`.
DATA_OPTIONS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "loss": st.sampled_from(LOSSES),
        "weighted": st.booleans(),
        "missing": st.booleans(),
        "categories": st.booleans(),
    }
)


def by_rank(sigma: float) -> reference.UpdateRule:
    """The paper's rule."""
    return reference.UpdateRule("rank", sigma, max(1, int(np.ceil(min(32 * sigma, 1e9)))))


def by_fidelity(target: float, memory_floor: float = 0.0) -> reference.UpdateRule:
    """The fidelity rule."""
    return reference.UpdateRule("fidelity", 0.0, 1, target, memory_floor)


def booking_only() -> reference.UpdateRule:
    """The fidelity rule, with regrowing deferred."""
    return reference.UpdateRule("fidelity", 0.0, 1, 0.85, 0.0, regrow=False)


# Any update rule.
TOLERANCES = st.sampled_from([0.0, 0.1, 1.0, 30.0, np.inf])
RULES = st.one_of(
    st.builds(reference.UpdateRule, st.just("regret"), TOLERANCES),
    st.builds(by_rank, TOLERANCES),
    st.builds(
        by_fidelity, st.sampled_from([0.0, 0.3, 0.75, 1.0]), st.sampled_from([0.0, 0.001, 0.1])
    ),
    st.builds(booking_only),
)


@dataclass(frozen=True)
class Data:
    """Rows for the engine; a categorical column holds the numbers of its categories."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    ids: np.ndarray
    n_categories: tuple[int, ...]
    loss: str

    def take(self, rows: np.ndarray) -> Data:
        """Some of the rows, in this order."""
        weight = None if self.weight is None else np.ascontiguousarray(self.weight[rows])
        return replace(
            self, X=self.X[rows], y=self.y[rows].copy(), weight=weight, ids=self.ids[rows].copy()
        )


def make_data(
    seed: int,
    loss: str = "logistic",
    *,
    n_rows: int = 120,
    weighted: bool = False,
    missing: bool = False,
    categories: bool = False,
    dtype: Any = np.float32,
) -> Data:
    """Four columns (real, of few values, mostly zero, rounded) and a target depending on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    X[:, 1] = rng.integers(0, 5, n_rows)
    X[:, 2] = np.where(rng.random(n_rows) < 0.9, 0.0, X[:, 2])
    X[:, 3] = X[:, 3].round(1)
    signal = X[:, 0] + (X[:, 1] == 2) + rng.normal(scale=0.5, size=n_rows)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    if loss == "squared":
        y = 30 * signal + 7
    else:
        n_classes = CLASSES[loss]
        y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    weight = None
    if weighted:
        weight = rng.exponential(size=n_rows)
        weight[rng.random(n_rows) < 0.1] = 0.0
    ids = rng.choice(10 * n_rows, n_rows, replace=False).astype(np.int64)
    n_categories = (0, 5, 0, 0) if categories else (0, 0, 0, 0)
    return Data(X.astype(dtype), y.astype(np.float64), weight, ids, n_categories, loss)


def fit_bins(data: Data, n_threads: int = 1, **changes: Any) -> BinMap:
    """Bins with few candidates, so that sampling them matters."""
    settings = {"max_bins": 64, "split_sample": 0.5, "width": False, "seed": 0, **changes}
    edges = settings.pop("bin_edges", {})
    categories = {f: n for f, n in enumerate(data.n_categories) if n}
    return BinMap.fit(
        data.X, data.ids, categories, bin_edges=edges, n_threads=n_threads, **settings
    )


def fit_engine_model(data: Data, bins: BinMap | None = None, **changes: Any) -> EngineModel:
    """A small model."""
    settings = {
        "n_estimators": 4,
        "learning_rate": 0.3,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 5,
        "min_hessian": 0.1,
        "l2_regularization": 0.1,
        "subsample": 1.0,
        "seed": 0,
        "updatable": True,
        **changes,
    }
    given = {
        name: settings.pop(name)
        for name in ("n_threads", "X_val", "y_val", "sample_weight_val", "on_iteration")
        if name in settings
    }
    return EngineModel.fit(
        fit_bins(data) if bins is None else bins,
        data.X,
        data.y,
        data.weight,
        data.ids,
        FitParams(data.loss, CLASSES[data.loss], **settings),
        **{"n_threads": 1, **given},
    )


def trees(engine_model: EngineModel) -> list[dict[str, list[Any]]]:
    """All nodes of all trees, as plain lists that can be compared bit for bit."""
    return [
        {name: values.tolist() for name, values in engine_model.tree(t).items()}
        for t in range(engine_model.n_trees)
    ]


def update_engine_model(
    engine_model: EngineModel,
    added: Data,
    removed: np.ndarray,
    rule: str = "regret",
    tolerance: float = 1.0,
    places: int = 1,
    fidelity: float = 0.75,
    memory_floor: float = 0.0,
    regrow: bool = True,
) -> UpdateCounts:
    """Add and remove rows."""
    rows = (added.X, added.y, added.weight, added.ids) if len(added.ids) else (None,) * 4
    n_classes = CLASSES[added.loss]
    classes = (np.arange(n_classes), n_classes)
    return engine_model.update(
        *rows, removed, *classes, rule, tolerance, places, fidelity, memory_floor, regrow, 1
    )


def counted(counts: UpdateCounts) -> tuple[float, ...]:
    """All counts of an update, as a tuple that can be compared."""
    return (*(getattr(counts, name) for name in COUNTS), *estimated(counts))


def estimated(counts: UpdateCounts) -> tuple[float, ...]:
    """The estimate of fidelity, as a tuple that can be compared; empty if there is none."""
    names = ("achieved", "left", "left_error", "most_left")
    names += ("rows_remembered", "rows_still_remembered")
    return tuple(getattr(counts.fidelity, name) for name in names) if counts.fidelity else ()
