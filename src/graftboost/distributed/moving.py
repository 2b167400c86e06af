"""Moving all rows of a model: to shards, and from shards to one process."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from graftboost._engine import EngineModel
from graftboost.distributed.errors import ShardError
from graftboost.distributed.exchange import ShardExchange
from graftboost.distributed.fitting import Estimator
from graftboost.distributed.shards import Answers


def distribute(estimator: Estimator, exchange: ShardExchange) -> Estimator:
    """Return a model with its rows in the shards of an exchange.

    The rows come from the model itself or from the shards that have them now, some at a time.
    """
    model, shards = estimator._engine_model, exchange.shards
    node_half, bins = model.node_half(), model.bins
    shards.call_all("begin_empty", bins, node_half)
    number = itertools.count()
    model.scatter(lambda message, *_: shards.answer_all("take", next(number), message))
    taken = sum(shards.call_all("end_taking", exchange.epoch, exchange.done))
    if taken != model.n_rows:
        raise ShardError(f"{taken} of {model.n_rows} rows have reached the shards")
    remote = EngineModel.from_node_half(bins, node_half)
    remote.attach(exchange)
    return estimator._with_engine_model(remote)


def gather(
    estimator: Estimator, node_half: bytes, read_rows: Callable[[bytes], Answers]
) -> Estimator:
    """Return a model with the rows of shards, which answer messages by a function.

    Parameters
    ----------
    estimator : GraftBoostClassifier or GraftBoostRegressor
        The model without rows.
    node_half : bytes
        Its node half.
    read_rows : callable
        Answers a message.

    Returns
    -------
    GraftBoostClassifier or GraftBoostRegressor
        The model, which needs no shards.
    """
    remote = EngineModel.from_node_half(estimator._engine_model.bins, node_half)
    if not remote.updatable:  # there are no rows
        return estimator
    remote.attach(lambda message, _phase, _half: read_rows(message))
    return estimator._with_engine_model(remote.gather())
