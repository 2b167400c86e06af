"""The node half of a model whose rows shards hold."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from graftboost._engine import EngineModel
from graftboost.distributed.exchange import ShardExchange
from graftboost.distributed.fitting import Estimator, fit_shards
from graftboost.distributed.folder import Folder
from graftboost.distributed.model_files import Decision, ModelFiles, folder_of
from graftboost.distributed.shards import Shards
from graftboost.distributed.sources import Source
from graftboost.estimators.loading import restored

NO_OPERATION = 0  # rows are read, and no model is trained yet

ShardMaker = Callable[[int, str], Shards]


class Coordinator:
    """Trains, updates and restores a model. It knows nothing of how shards are reached.

    The model is an ordinary estimator whose engine model asks shards for what it needs of rows.

    Parameters
    ----------
    folder : Folder
        Where the files of the model are; those of its shards are in folders inside.
    make_shards : callable
        Returns so many shards, new ones or those that were there before, with files in the folder
        of this name.
    """

    def __init__(self, folder: Folder, make_shards: ShardMaker) -> None:
        self._files = ModelFiles(folder)
        self._make_shards = make_shards
        self._shards: Shards | None = None
        self._exchange: ShardExchange | None = None
        self._generation = 0  # the operation with which these shards began
        self._request = ""
        self.estimator: Estimator | None = None

    # --- beginning ----------------------------------------------------------------------------

    def fit(
        self,
        estimator: Estimator,
        sources: Sequence[Source],
        validation: tuple[Any, Any, Any] = (None, None, None),
    ) -> None:
        """Train a model on the rows of so many sources, each of which becomes a shard."""
        self._files.clear()
        self._open(len(sources), NO_OPERATION, NO_OPERATION)
        assert self._shards is not None
        assert self._exchange is not None
        learned = fit_shards(estimator, self._shards, self._exchange, sources, validation)
        estimator.__dict__.update(learned)
        self._publish(estimator, self._exchange.decided)

    def begin_with(self, estimator: Estimator, n_shards: int) -> None:
        """Give the rows of a model that holds them itself to so many shards."""
        self._begin(estimator, estimator._engine_model, n_shards, NO_OPERATION)

    def recover(self) -> None:
        """Continue with the model of the files."""
        saved, decision = self._files.read()
        estimator = restored(saved, "the model of the shards")
        self._open(decision.n_shards, decision.generation, decision.operation)
        assert self._exchange is not None
        self._exchange.settle()
        estimator._engine_model.attach(self._exchange)
        self._request = decision.request
        self.estimator = estimator

    def rebalance(self, n_shards: int) -> None:
        """Distribute the rows over so many shards. The model does not change."""
        estimator = self.fitted()
        assert self._shards is not None
        assert self._exchange is not None
        gathered, decided = estimator._engine_model.gather(), self._exchange.decided
        former, generation = self._shards, self._generation
        former.close()  # their files stay, and there may be no room for two sets of shards
        try:
            self._begin(estimator, gathered, n_shards, decided + 1)
        except BaseException:
            self._open(former.n_shards, generation, decided)
            self._exchange.settle()
            estimator._engine_model.attach(self._exchange)
            raise
        self._files.remove_generation(generation, former.n_shards)

    def _begin(
        self, estimator: Estimator, engine_model: EngineModel, n_shards: int, operation: int
    ) -> None:
        node_half, bins = engine_model.node_half(), engine_model.bins
        self._open(n_shards, operation, operation)
        assert self._shards is not None
        assert self._exchange is not None
        self._shards.call_all("begin_empty", bins, node_half, operation)
        shards = self._shards
        engine_model.scatter(lambda message, _phase, _half: shards.answer_all("take", message))
        self._shards.call_all("end_taking", operation)
        remote = EngineModel.from_node_half(bins, node_half)
        remote.attach(self._exchange)
        self._publish(estimator._with_engine_model(remote), operation)

    def _open(self, n_shards: int, generation: int, decided: int) -> None:
        self._shards = self._make_shards(n_shards, folder_of(generation))
        self._generation = generation
        # The engine model keeps the exchange, which must not keep the model in turn.
        decide = weakref.WeakMethod(self._decide)

        def decide_if_alive(operation: int, node_half: bytes) -> None:
            method = decide()
            assert method is not None
            method(operation, node_half)

        self._exchange = ShardExchange(self._shards, decided, decide_if_alive)

    def _publish(self, estimator: Estimator, operation: int) -> None:
        self.estimator = estimator
        self._files.write_model(estimator._saved())
        self._decide(operation, estimator._engine_model.node_half())

    # --- operations ---------------------------------------------------------------------------

    def fitted(self) -> Estimator:
        """Return the model."""
        if self.estimator is None:
            raise RuntimeError("there is no model yet. Call fit.")
        return self.estimator

    @property
    def operation(self) -> int:
        """The last operation that is done."""
        return NO_OPERATION if self._exchange is None else self._exchange.decided

    def call(self, request: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the estimator that changes it.

        A request that was decided before the node half was lost is not done again: its report is
        lost, and None is returned.
        """
        estimator = self.fitted()
        if request and request == self._request:
            return None
        columns, before, self._request = estimator._columns, self._request, request
        decided = self.operation
        try:
            result = getattr(estimator, method)(*arguments, **named)
        except BaseException:
            if self.operation == decided:
                self._request = before
            raise
        if estimator._columns is not columns:
            self._files.write_model(estimator._saved())
        return result

    def _decide(self, operation: int, node_half: bytes) -> None:
        self._files.write_decision(self._decision(operation, node_half))

    def _decision(self, operation: int, node_half: bytes) -> Decision:
        assert self._shards is not None
        estimator = self.estimator
        classes = None if estimator is None else getattr(estimator, "_classes", None)
        return Decision(
            operation,
            self._generation,
            self._shards.n_shards,
            0 if estimator is None else estimator._next_id,
            classes[max(classes)] if classes else None,
            node_half,
            self._request,
        )

    def gathered(self) -> Estimator:
        """Return the model with all rows, as an estimator that needs no shards."""
        estimator = self.fitted()
        return estimator._with_engine_model(estimator._engine_model.gather())

    def compact(self) -> None:
        """Write the rows of all shards as they are; files with removed rows are erased."""
        assert self._shards is not None
        self._shards.call_all("compact")

    def close(self) -> None:
        """End the shards. The files stay."""
        if self._shards is not None:
            self._shards.close()
