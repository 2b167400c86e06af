"""Read access to a fitted model: its rows, leaf values, and the ranks of its splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

from graftboost.estimators.threads import thread_count
from graftboost.input.row_ids import check_row_ids
from graftboost.input.sparse import AnyTable, for_engine

if TYPE_CHECKING:
    from graftboost._engine import BinMap
    from graftboost.estimators.base_estimator import GraftBoost

# The loss of a row whose class the model does not know: a probability of 0 in float32.
UNKNOWN_CLASS_LOSS = float(-np.log(np.finfo(np.float32).eps))


@dataclass(frozen=True)
class HeldRows:
    """Rows as a model holds them.

    Attributes
    ----------
    ids : ndarray of int64
        Their ids.
    X : CSR of float64
        For each cell a value from its bin, with categories encoded as numbers. The model that holds
        the rows, its copies and their refits predict the same for these values as for the original
        rows. Cells that are not stored are 0.
    y : ndarray
        Their targets, or classes.
    bins : BinMap
        The bins of the model.
    """

    ids: NDArray[np.int64]
    X: AnyTable
    y: NDArray[Any]
    bins: BinMap

    def __len__(self) -> int:
        return len(self.ids)


def held_rows(model: GraftBoost, row_ids: ArrayLike) -> HeldRows:
    """Return rows that a model holds.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        A fitted model that is updatable.
    row_ids : array-like of int
        Ids of the rows.

    Returns
    -------
    HeldRows
        The rows, in the order of the ids.

    Raises
    ------
    ValueError
        If the model holds no row with one of the ids.
    """
    model._check_updatable()
    array = np.atleast_1d(np.asarray(row_ids))
    ids = check_row_ids(array, len(array), or_else="")
    assert ids is not None
    begin, columns, codes, target = model._engine_model.held_rows(ids)
    values = _values_of(columns, codes, model._engine_model.bins)
    classes = getattr(model, "classes_", None)
    return HeldRows(
        ids,
        csr_array((values, columns, begin), shape=(len(ids), model.n_features_in_)),
        target if classes is None else classes[target.astype(np.intp)],
        model._engine_model.bins,
    )


def _values_of(
    columns: NDArray[np.int32], codes: NDArray[np.uint16], bins: BinMap
) -> NDArray[np.float64]:
    """Return a value for each code: the middle of a bin, or the number of a category."""
    values = {feature: _value_of_each_code(bins, feature) for feature in set(columns.tolist())}
    pairs = zip(columns.tolist(), codes.tolist(), strict=True)
    return np.array([values[feature][code] for feature, code in pairs], dtype=np.float64)


def _value_of_each_code(bins: BinMap, feature: int) -> NDArray[np.float64]:
    if bins.n_categories(feature):
        return np.arange(bins.n_codes(feature), dtype=np.float64) - 1  # the last code is "unseen"
    edges = bins.edges(feature)
    if not len(edges):
        return np.array([np.nan, 0.0])
    middles = edges[:-1] + (edges[1:] - edges[:-1]) / 2
    middles = np.where(
        middles > edges[:-1], middles, edges[1:]
    )  # there is none between adjacent floats
    return np.array([np.nan, edges[0], *middles, np.nextafter(edges[-1], np.inf)])


def losses(model: GraftBoost, rows: HeldRows) -> NDArray[np.float64]:
    """Return the loss of each row: log loss of its class, or the squared error.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model that holds the rows, or one with the same columns.
    rows : HeldRows
        Rows, from `held_rows`.

    Returns
    -------
    ndarray of float64
        Losses.
    """
    scores = raw_scores(model, rows)
    classes = getattr(model, "classes_", None)
    if classes is None:
        errors: NDArray[np.float64] = scores[:, 0] - rows.y
        return errors**2
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    index = {label: i for i, label in enumerate(classes.tolist())}
    positions = np.array([index.get(label, -1) for label in rows.y.tolist()], dtype=np.intp)
    known = scores[np.arange(len(scores)), positions]
    found: NDArray[np.float64] = np.where(
        positions < 0, UNKNOWN_CLASS_LOSS, logsumexp(scores, axis=1) - known
    )
    return found


def raw_scores(model: GraftBoost, rows: HeldRows) -> NDArray[np.float64]:
    """Return the raw scores of rows, with one column for each tree of an iteration."""
    if rows.X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"rows have {rows.X.shape[1]} features, but the model has {model.n_features_in_}. "
            "Pass a model with the columns of the one that holds the rows."
        )
    if not _same_bins(model._engine_model.bins, rows.bins):
        raise ValueError(
            "The model has other bins than the model that holds the rows, so it cannot predict "
            "them. Pass a copy or a refit of that model, or one fitted with its bin_edges."
        )
    return model._engine_model.raw_scores(for_engine(rows.X), thread_count(model.n_jobs))


def _same_bins(first: BinMap, second: BinMap) -> bool:
    if first.n_features != second.n_features or first.categorical != second.categorical:
        return False
    # All other features have the same bins.
    cut = set(first.cut.tolist()) | set(second.cut.tolist())
    return all(np.array_equal(first.edges(f), second.edges(f)) for f in cut)


def leaf_values(model: GraftBoost) -> Iterator[NDArray[np.float64]]:
    """Yield the values of the leaves of each tree, from left to right."""
    for t in range(model._engine_model.n_trees):
        tree = model._engine_model.tree(t)
        order = _leaves_from_left(tree["left"], tree["right"])
        yield tree["value"][order]


def _leaves_from_left(left: NDArray[np.int32], right: NDArray[np.int32]) -> list[int]:
    leaves, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        if left[node] < 0:
            leaves.append(node)
        else:
            waiting += [int(right[node]), int(left[node])]
    return leaves


@dataclass(frozen=True)
class SplitRanks:
    """Every split of a model compared with the candidates of its node, one entry per split.

    Attributes
    ----------
    tree : ndarray of int
        The tree.
    n_better : ndarray of int
        The rank of the split: the number of candidates of its node with a larger gain.
    gain : ndarray of float
        Its gain; minus infinity if one child has too few rows.
    left_score, right_score : ndarray of float
        Squared sum of gradients divided by the sum of hessians, for each child.
    left_rows, right_rows : ndarray of int
        Number of rows of each child.
    next_gain, other_gain : ndarray of float
        The best gain of another candidate of the same feature, and of a candidate of another
        feature; minus infinity if there is none.
    next_rows : ndarray of int
        The smallest number of rows that another candidate of the same feature routes
        differently.
    """

    tree: NDArray[np.int64]
    n_better: NDArray[np.int64]
    gain: NDArray[np.float64]
    left_score: NDArray[np.float64]
    right_score: NDArray[np.float64]
    left_rows: NDArray[np.int64]
    right_rows: NDArray[np.int64]
    next_gain: NDArray[np.float64]
    other_gain: NDArray[np.float64]
    next_rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tree)


def split_ranks(model: GraftBoost) -> SplitRanks:
    """Return the ranks of all splits of a model, from newly computed histograms.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        A fitted model that is updatable.

    Returns
    -------
    SplitRanks
        All splits, tree by tree.
    """
    model._check_updatable()
    trees = [model._engine_model.splits(t) for t in range(model._engine_model.n_trees)]
    number = np.repeat(np.arange(len(trees)), [len(tree["gain"]) for tree in trees])
    names = [name for name in SplitRanks.__dataclass_fields__ if name != "tree"]
    return SplitRanks(number, *(np.concatenate([tree[name] for tree in trees]) for name in names))
