"""The estimators' parameters: which values each may have, and what it means.

Both estimators take them, and each is described once, here.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeVar

from sklearn.utils._param_validation import Interval, StrOptions

Estimator = TypeVar("Estimator", bound=type)

# The engine counts in 32 bits.
MOST = 2**31 - 1

CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, MOST, closed="both")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    # Leaf ids take one byte, or two.
    "max_leaf_nodes": [Interval(Integral, 2, 65_536, closed="both")],
    "min_samples_leaf": [Interval(Integral, 1, MOST, closed="both")],
    "l2_regularization": [Interval(Real, 0, None, closed="left")],
    "max_bins": [Interval(Integral, 2, 65_535, closed="both")],
    "split_sample": [Interval(Real, 0, 1, closed="right")],
    "binning": [StrOptions({"quantile", "width"})],
    "bin_edges": ["array-like", dict, None],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "tolerance_rule": [StrOptions({"regret", "rank"})],
    "tolerance": [Interval(Real, 0, math.inf, closed="both")],
    "updatable": ["boolean"],
    "stats_memory": [Interval(Real, 0, math.inf, closed="both"), None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, MOST, closed="both")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],  # any integer but 0: see `threads.thread_count`
    "verbose": ["verbose"],
}

DESCRIPTIONS = """\
    n_estimators : int, default=100
        Iterations of boosting. Each grows one tree, or one per class when there are more than two.
    learning_rate : float, default=0.1
        Shrinkage: what share of its best value a leaf gets.
    max_leaf_nodes : int, default=31
        Leaves of a tree, from 2 to 65,536.
    min_samples_leaf : int, default=20
        Rows that a leaf needs, counted without their weights.
    l2_regularization : float, default=0.0
        Added to the denominator of a leaf's value.
    max_bins : int, default=1024
        Bins into which a feature is cut at most, up to 65,535.
    split_sample : float, default=0.1
        At most ``ceil(split_sample * max_bins)`` of a feature's bin boundaries are drawn, by hash,
        as candidates for splits; a feature with fewer boundaries keeps all.
    binning : {"quantile", "width"}, default="quantile"
        Cut so that bins hold equally many rows, or by a width that doubles until `max_bins` are
        enough.
    bin_edges : dict or sequence, default=None
        Edges to use instead of fitted ones: a dict from a feature's name or index to increasing
        numbers, or one such sequence for each feature, None where the edges are to be fitted. A
        value equal to an edge lies left of it. Edges that are given depend on no row.
    subsample : float, default=1.0
        Share of the rows that each tree is grown on, drawn by hash of the row's id.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, \\
            default="from_dtype"
        Which features are categorical. With ``"from_dtype"``, the columns of a category dtype
        (pandas category, polars Categorical and Enum, pyarrow dictionary). Features listed by name,
        index or mask may also hold numbers or text: their distinct values are the categories. A
        category that was not seen in `fit` belongs to none of those that were.
    tolerance_rule : {"regret", "rank"}, default="regret"
        How to tell, in an update, that a split is still good enough.
    tolerance : float, default=1.2
        How much worse than the best candidate a split may become before it is grown anew. With
        infinity none ever is, unless a new class or the first weights come in.
    updatable : bool, default=True
        Whether to keep the state that updates need: five bytes or so for each row and tree.
    stats_memory : float or None, default=None
        Bytes that the sums of the nodes' candidates may take, which updates look at. What does not
        fit is counted again from the rows when an update comes to it: updates then take longer, but
        do the same. None means half of the memory there is, infinity that all are kept.
    early_stopping : bool, default=False
        Whether to stop when the validation loss no longer falls, and keep the best iteration. The
        loss is measured on `X_val`, or else on rows held out from `X`.
    validation_fraction : float, default=0.1
        Share of the rows to hold out for early stopping, drawn by hash of the row's id.
    n_iter_no_change : int, default=10
        Iterations to wait for the validation loss to fall.
    tol : float, default=1e-7
        By how much the validation loss has to fall to count.
    random_state : int, RandomState or None, default=0
        Seed. The same rows with the same ids, in any order and on any number of threads, give the
        same model, bit for bit.
    n_jobs : int or None, default=None
        Threads. None and -1 mean all cores that this process may use; -2 leaves one free. More
        than four threads for each core are taken as four. The result does not depend on it.
    verbose : int, default=0
        If not 0, a fit that takes long shows its progress on standard error."""


def describe_parameters(estimator: Estimator) -> Estimator:
    """Put the descriptions where the docstring of an estimator says ``{parameters}``."""
    if estimator.__doc__ is not None:  # it is, under python -OO
        estimator.__doc__ = estimator.__doc__.replace("    {parameters}", DESCRIPTIONS)
    return estimator
