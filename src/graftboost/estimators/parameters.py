"""The parameters of the estimators: their allowed values and descriptions.

Both estimators share them, so each parameter is described once, here.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeVar

from sklearn.utils._param_validation import Interval, StrOptions

Estimator = TypeVar("Estimator", bound=type)

# The engine uses 32-bit counters.
MOST = 2**31 - 1

CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, MOST, closed="both")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    # Leaf ids take one or two bytes.
    "max_leaf_nodes": [Interval(Integral, 2, 65_536, closed="both")],
    "min_samples_leaf": [Interval(Integral, 1, MOST, closed="both")],
    "min_hessian": [Interval(Real, 0, None, closed="left")],
    "l2_regularization": [Interval(Real, 0, None, closed="left")],
    "max_bins": [Interval(Integral, 2, 65_535, closed="both")],
    "split_sample": [Interval(Real, 0, 1, closed="right")],
    "binning": [StrOptions({"quantile", "width"})],
    "bin_edges": ["array-like", dict, None],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "fidelity": [Interval(Real, 0, 1, closed="both")],
    "memory_floor": [Interval(Real, 0, 1e9, closed="both")],
    "update_rule": [StrOptions({"fidelity", "regret", "rank"})],
    "tolerance": [Interval(Real, 0, math.inf, closed="both"), None],
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
        Number of boosting iterations. An iteration grows one tree, or one tree per class if there
        are more than two classes.
    learning_rate : float, default=0.1
        Shrinkage factor of the leaf values.
    max_leaf_nodes : int, default=31
        Maximal number of leaves per tree, from 2 to 65,536.
    min_samples_leaf : int, default=20
        Minimal number of rows per leaf, regardless of their weights.
    min_hessian : float, default=0.1
        Minimal sum of hessians in each child of a split. The hessian of a row is ``p * (1 - p)``
        for a class of probability p, and 1 for regression, times its weight in units of the median
        weight. LightGBM calls this ``min_sum_hessian_in_leaf``.
    l2_regularization : float, default=0.0
        Added to the denominator of leaf values, in units of the weights.
    max_bins : int, default=255
        Maximal number of bins per feature, up to 65,535. Cells of a feature with up to 255 bins
        take one byte, others two.
    split_sample : float, default=1.0
        At most ``ceil(split_sample * max_bins)`` bin boundaries of a feature, selected by hash,
        become split candidates. A feature with fewer boundaries keeps all of them. The paper uses
        ``max_bins=1024`` and ``split_sample=0.1``.
    binning : {"quantile", "width"}, default="quantile"
        With ``"quantile"``, bins contain about equally many rows, but a value with more rows than
        that has a bin of its own. With ``"width"``, bins have a width that is doubled until
        `max_bins` suffice.
    bin_edges : dict or sequence, default=None
        Bin edges to use instead of computed ones: a dict from a feature's name or index to
        increasing numbers, or one such sequence per feature, with None where edges are to be
        computed. A value equal to an edge lies left of it. Supplied edges depend on no row.
    subsample : float, default=1.0
        Fraction of the rows used for each tree, selected by a hash of the row id.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, \\
            default="from_dtype"
        Which features are categorical. With ``"from_dtype"``, these are the columns with a category
        dtype (pandas category, polars Categorical and Enum, pyarrow dictionary). Features listed by
        name, index or mask may also contain numbers or text; their distinct values are the
        categories. A category that was not seen in `fit` is different from all known categories.
    fidelity : float, default=0.85
        How much of what a retrain would achieve an update should achieve for the rows it adds and
        removes, measured by their losses. More takes longer. 0 keeps the structure of all trees,
        unless an update adds an unseen class or the first weights.
    memory_floor : float, default=0.02
        Changed rows of which the model remembers less than this, in nats (for regression: in units
        of the residual variance), need no regrowing. A `fidelity` above 0.85 lowers what may be
        left of the others, down to nothing at 1.
    update_rule : {"fidelity", "regret", "rank"}, default="fidelity"
        The rule by which an update selects the nodes to regrow. ``"regret"`` and ``"rank"`` use
        `tolerance` instead of `fidelity` and `memory_floor`.
    tolerance : float or None, default=None
        How much worse than the best candidate a split may become before its node is regrown, under
        the rules ``"regret"`` (None means 3.0) and ``"rank"`` (None means 0.1). Infinity keeps the
        structure.
    updatable : bool, default=True
        Whether to keep the state that updates need, about three bytes per row and tree for a
        classifier and five for a regressor.
    stats_memory : float or None, default=None
        Memory in bytes for the histograms of nodes, which updates use. Histograms that do not fit
        are recomputed from the rows when needed, which makes updates slower but does not change
        their results. None means half of the machine's memory, infinity keeps all histograms.
    early_stopping : bool, default=False
        Whether to stop when the validation loss no longer decreases, and to keep the iterations up
        to the best one. The loss is computed on `X_val` or, without it, on rows held out from `X`.
    validation_fraction : float, default=0.1
        Fraction of the rows held out for early stopping, selected by a hash of the row id.
    n_iter_no_change : int, default=10
        Number of iterations without a decrease of the validation loss after which to stop.
    tol : float, default=1e-7
        Minimal decrease of the validation loss that counts as an improvement.
    random_state : int, RandomState or None, default=0
        Seed. The same rows and ids, in any order and with any number of threads, give the same
        model, bit for bit. A classifier rounds gradients by it, which decides where two candidates
        nearly tie.
    n_jobs : int or None, default=None
        Number of threads. None and -1 mean all cores that this process may use; -2 leaves one
        free. The number is limited to four per core. Results do not depend on it.
    verbose : int, default=0
        If not 0, long fits show their progress on standard error."""


def describe_parameters(estimator: Estimator) -> Estimator:
    """Insert the descriptions for ``{parameters}`` in the docstring of an estimator."""
    if estimator.__doc__ is not None:  # it is None under python -OO
        estimator.__doc__ = estimator.__doc__.replace("    {parameters}", DESCRIPTIONS)
    return estimator
