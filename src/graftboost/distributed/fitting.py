"""Training a model on the rows of all shards."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import BinMap, EngineModel, find_bins
from graftboost.distributed.exchange import ShardExchange
from graftboost.distributed.part import PartFacts, PartPlan, PlannedFacts
from graftboost.distributed.shards import Shards
from graftboost.distributed.sources import Source
from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor
from graftboost.estimators.learning import fitted_attributes
from graftboost.estimators.progress import OnIteration
from graftboost.estimators.seed import draw_seed
from graftboost.estimators.threads import thread_count
from graftboost.input.bin_edges import check_bin_edges
from graftboost.input.categories import Categories
from graftboost.input.columns import Columns, check_few
from graftboost.input.rows import (
    Rows,
    check_enough_to_train,
    join_rows,
    warn_about_unequal_weights,
)
from graftboost.input.sparse import for_engine
from graftboost.input.table import Table
from graftboost.input.targets import check_labels
from graftboost.input.weights import weigh_classes

Estimator = GraftBoostClassifier | GraftBoostRegressor


def fit_shards(
    estimator: Estimator,
    exchange: ShardExchange,
    sources: Sequence[Source],
    given_validation: tuple[Any, Any, Any] = (None, None, None),
    on_iteration: OnIteration | None = None,
) -> dict[str, Any]:
    """Train on the rows of all sources, one for each shard; return the fitted attributes.

    The model is the one that the estimator would learn from all rows together.
    """
    estimator._validate_params()
    shards = exchange.shards
    classifies = isinstance(estimator, GraftBoostClassifier)
    options = {
        "classifies": classifies,
        "categorical_features": estimator.categorical_features,
    }
    facts: list[PartFacts] = shards.call_each("read", [(source, options) for source in sources])
    columns = _common_columns(facts)
    classes, class_weights = _common_classes(estimator, facts)
    weighted = any(part.weighted for part in facts) or class_weights is not None
    if not any(part.any_weight for part in facts):
        raise ValueError(
            "sample_weight is zero for every row, which leaves nothing to train on. Pass a "
            "positive weight for at least one row."
        )
    seed = draw_seed(estimator.random_state)
    validation = estimator._read_validation(*given_validation, columns, classes)
    if validation is not None:
        validation = validation.weighed_by_class(class_weights)
    holds_out = estimator.early_stopping and validation is None
    first_ids = _first_ids(facts)
    plans = [
        PartPlan(
            columns.to_plain(),
            classes,
            class_weights,
            first_id,
            weighted,
            (estimator.validation_fraction, seed) if holds_out else None,
        )
        for first_id in first_ids
    ]
    planned: list[PlannedFacts] = shards.call_each("plan", [(plan,) for plan in plans])
    if first_ids[0] is None:
        _check_distinct(shards)
    next_id = max(part.largest_id for part in planned) + 1
    if holds_out:
        planned = _hold_out_one(shards, plans, planned)
        validation = join_rows([part.validation for part in planned if part.validation is not None])
    counts = functools.reduce(operator.add, (part.counts for part in planned))
    check_enough_to_train(counts, validation, estimator.validation_fraction)
    if validation is not None:
        validation = validation.with_weights_near_one()
    bins = _find_bins(estimator, shards, columns, seed)
    engine_model = _train(estimator, exchange, bins, classes, seed, validation, on_iteration)
    if not engine_model.gain_importances().any():
        warn_about_unequal_weights(counts, estimator.min_samples_leaf, estimator.min_hessian)
    return fitted_attributes(engine_model, next_id, columns, classes, class_weights)


def _common_columns(facts: Sequence[PartFacts]) -> Columns:
    """Return the columns of all shards, with the categories of all rows."""
    found = [Columns.from_plain(part.columns) for part in facts if part.n_rows]
    if not found:
        raise ValueError("X has no rows. Pass at least one.")
    first = found[0]
    for other in found[1:]:
        plain, other_plain = first.to_plain(), other.to_plain()
        if any(plain[key] != other_plain[key] for key in ("names", "n_features")):
            raise ValueError(
                "The rows of two shards do not have the same columns. Pass tables with the same "
                "columns in the same order."
            )
    categories = {}
    for feature in sorted(set().union(*(columns.categories for columns in found))):
        values: dict[Any, None] = {}
        for columns in found:
            if feature not in columns.categories:
                raise ValueError(
                    f"Feature {feature} has a category dtype in the rows of one shard, but not in "
                    "those of another. Pass tables with the same dtypes."
                )
            values.update(dict.fromkeys(columns.categories[feature].values))
        categories[feature] = Categories(list(values))
        check_few(categories[feature], f"X: column {feature}")
    return Columns(first.names, first.n_features, categories)


def _common_classes(
    estimator: Estimator, facts: Sequence[PartFacts]
) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
    """Return the classes of all rows and their weights; None for a regression."""
    if not isinstance(estimator, GraftBoostClassifier):
        return None, None
    labels = np.concatenate([part.labels for part in facts if part.labels is not None])
    classes, codes = check_labels(labels, len(labels))
    counts = np.zeros(len(classes), dtype=np.int64)
    every = np.concatenate([part.counts for part in facts if part.counts is not None])
    np.add.at(counts, codes.astype(np.intp), every)
    return classes, weigh_classes(estimator.class_weight, classes, counts)


def _first_ids(facts: Sequence[PartFacts]) -> list[int | None]:
    """Return the id of the first row of each shard, or None if rows have ids of their own."""
    with_rows = [part for part in facts if part.n_rows]
    if all(part.has_ids for part in with_rows):
        return [None] * len(facts)
    if any(part.has_ids for part in with_rows):
        raise ValueError(
            "The rows of some shards have ids, those of others have none. Pass row_ids for all "
            "rows, or for none."
        )
    begins = np.cumsum([0, *(part.n_rows for part in facts)])
    return [int(begin) for begin in begins[:-1]]


def _check_distinct(shards: Shards) -> None:
    """Raise if two rows have the same id. Each shard looks at some of the ids of all."""
    pieces = shards.call_all("ids_for", shards.n_shards)
    found = shards.call_each(
        "duplicates", [([of[k] for of in pieces],) for k in range(shards.n_shards)]
    )
    for twice in found:
        if twice is not None:
            raise ValueError(
                f"row_ids contains {twice} more than once, but ids must be unique. Remove "
                "duplicates, or omit row_ids to number the rows."
            )


def _hold_out_one(
    shards: Shards, plans: Sequence[PartPlan], planned: list[PlannedFacts]
) -> list[PlannedFacts]:
    """Hold out the row with the least hash of all if no shard has drawn one."""
    if any(part.validation is not None and len(part.validation.y) for part in planned):
        return planned
    least = min(range(len(planned)), key=lambda index: planned[index].least_hash)
    held = shards.call(least, "hold_out_least", plans[least])
    return [held if index == least else part for index, part in enumerate(planned)]


def _find_bins(estimator: Estimator, shards: Shards, columns: Columns, seed: int) -> BinMap:
    shards.call_all("begin_binning")
    table = Table("X", columns.names, np.empty((0, columns.n_features)), 0)
    return find_bins(
        lambda message, _phase, _node_half: shards.answer_all("answer_binning", message),
        columns.n_categories,
        estimator.max_bins,
        estimator.split_sample,
        estimator.binning == "width",
        check_bin_edges(estimator.bin_edges, table, columns),
        seed,
        estimator.min_samples_leaf,
    )


def _train(
    estimator: Estimator,
    exchange: ShardExchange,
    bins: BinMap,
    classes: NDArray[Any] | None,
    seed: int,
    validation: Rows | None,
    on_iteration: OnIteration | None,
) -> EngineModel:
    params = estimator._fit_params(1 if classes is None else len(classes), seed)
    exchange.shards.call_all(
        "begin_fit", exchange.epoch, exchange.done, bins, params.loss, params.n_classes
    )
    return EngineModel.fit_remote(
        bins,
        exchange,
        params,
        thread_count(estimator.n_jobs),
        X_val=None if validation is None else for_engine(validation.X),
        y_val=None if validation is None else validation.y,
        sample_weight_val=None if validation is None else validation.weight,
        on_iteration=on_iteration,
    )
