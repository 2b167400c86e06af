"""The node half of a model whose rows shards hold."""

from __future__ import annotations

import contextlib
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graftboost.distributed.errors import (
    ChangedError,
    OutcomeUnknownError,
    ShardError,
    ShardLostError,
)
from graftboost.distributed.exchange import READ, REPLACED, ShardExchange, Traffic
from graftboost.distributed.fitting import Estimator, fit_shards
from graftboost.distributed.folder import Folder
from graftboost.distributed.model_files import (
    Decision,
    ModelFiles,
    Request,
    generation_of,
    shard_folder,
)
from graftboost.distributed.moving import distribute
from graftboost.distributed.operation import Operation
from graftboost.distributed.shards import Answers, ShardHost
from graftboost.distributed.sources import Source
from graftboost.estimators.loading import restored
from graftboost.estimators.progress import OnIteration
from graftboost.input.columns import Columns
from graftboost.input.row_ids import NO_IDS
from graftboost.persistence.atomic_file import UncertainError

MOST_BEGINNINGS = 3  # attempts to give rows to shards
MOST_REQUESTS = 1000  # that are remembered
MOST_ATTEMPTS = 20  # to become the node half, while another process is deciding

# Begins on new shards: receives the exchange with them, returns the model.
Beginning = Callable[[ShardExchange], Estimator]


class Coordinator:
    """Trains, updates and restores a model. It knows nothing of how shards are reached.

    The model is an ordinary estimator whose engine model asks shards for what it needs of rows.
    What was decided is in the files at any time, so another coordinator with the same folder and
    the same host can continue.

    Parameters
    ----------
    folder : Folder
        Where the files of the model are; those of its shards are in folders inside.
    host : ShardHost
        Whatever runs the shards.
    """

    def __init__(self, folder: Folder, host: ShardHost) -> None:
        self._folder = folder
        self._files = ModelFiles(folder)
        self._host = host
        self._epoch = 0  # the number of the decision with which this process began
        self._decision: Decision | None = None
        self._exchange: ShardExchange | None = None
        self._estimator: Estimator | None = None
        self._request: Request | None = None  # of the operation under way
        self._given_ids: Any = None  # of the rows that it adds; None if they are numbered
        self._current = ""  # its name
        self._working: ShardExchange | None = None  # which it uses
        self._interrupted = ""  # the name of a request that is to be undone
        self._reports: dict[str, Any] = {}  # by the name of the request

    # --- beginning --------------------------------------------------------------------------------

    def fit(
        self,
        request: str,
        estimator: Estimator,
        sources: Sequence[Source],
        validation: tuple[Any, Any, Any] = (None, None, None),
        on_iteration: OnIteration | None = None,
    ) -> None:
        """Train a model on the rows of so many sources, each of which becomes a shard.

        A model that was there before is replaced when the new one is complete.
        """

        def train(exchange: ShardExchange) -> Estimator:
            learned = fit_shards(estimator, exchange, sources, validation, on_iteration)
            estimator.__dict__.update(learned)
            return estimator

        self._begin(request, len(sources), train)

    def begin_with(self, request: str, estimator: Estimator, n_shards: int) -> None:
        """Give the rows of a model that holds them itself to so many shards."""
        self._begin(request, n_shards, lambda exchange: distribute(estimator, exchange))

    def rebalance(self, request: str, n_shards: int) -> None:
        """Distribute the rows over so many shards. The model does not change."""
        estimator = self.fitted()
        self._begin(request, n_shards, lambda exchange: distribute(estimator, exchange))

    def load(self, request: str, saved: Folder) -> None:
        """Begin with a model that `save` has written, and with as many shards as it had."""
        self._check_other(saved, "load")
        files = ModelFiles(saved)
        if not files.latest():
            raise FileNotFoundError(
                f"{saved}: there is no model of a cluster. Pass the folder that save has written."
            )
        decision = files.read_decision(files.latest())

        def read(exchange: ShardExchange) -> Estimator:
            folders = [
                shard_folder(saved, decision.generation, index)
                for index in range(decision.n_shards)
            ]
            exchange.shards.call_each(
                "load",
                [(exchange.epoch, exchange.done, folder, decision.operation) for folder in folders],
            )
            estimator = restored(files.read_model(decision), "the saved model")
            _attach(estimator, exchange)
            return estimator

        self._begin(request, decision.n_shards, read)

    def save(self, target: Folder) -> None:
        """Write the model and its rows to another folder, from which `load` can begin.

        A model that was saved there before is replaced when the new one is complete.
        """
        self._check_other(target, "save")
        self._forget_categories()
        decision, exchange = self._known_decision(), self._known_exchange()
        files = ModelFiles(target)
        files.check_own()
        generation = generation_of(uuid.uuid4().hex)
        exchange.call_each(
            "save",
            [(shard_folder(target, generation, index),) for index in range(decision.n_shards)],
        )
        saved = replace(
            decision,
            number=files.latest() + 1,
            generation=generation,
            model=files.write_model(self.fitted()._saved()),
            request=None,
            earlier=(),
        )
        files.write_decision(saved)
        files.remove_others(saved)

    def _check_other(self, folder: Folder, method: str) -> None:
        """Raise if a folder is that of this model, around it, or in it."""
        one, other = f"{folder}/", f"{self._folder}/"
        if one.startswith(other) or other.startswith(one):
            raise ValueError(
                f"{method}: the path {folder} is the storage of the model itself, or a folder "
                "around it or in it. Pass another folder."
            )

    def _begin(self, request: str, n_shards: int, beginning: Beginning) -> None:
        """Let new shards hold the model that `beginning` returns."""
        self._ensure_recovered()
        if self._decision is not None and self._decision.about_request(request) is not None:
            return
        first = request or uuid.uuid4().hex  # whoever sent the request may have started shards
        for number in range(MOST_BEGINNINGS):
            attempt = uuid.uuid4().hex if number else first
            try:
                self._begin_once(request, attempt, n_shards, beginning)
            except ShardLostError as lost:
                if number == MOST_BEGINNINGS - 1:
                    raise ShardError(
                        f"{lost}. This was the last of {MOST_BEGINNINGS} attempts, and nothing has "
                        "changed. Check the memory and the logs of its machine, then call again."
                    ) from lost
            else:
                return

    def _begin_once(self, request: str, attempt: str, n_shards: int, beginning: Beginning) -> None:
        before = self._decision
        first = Operation(0 if before is None else before.operation.number + 1, attempt)
        epoch, generation = max(self._epoch, 1), generation_of(attempt)
        shards = self._host.open(n_shards, generation)
        exchange = ShardExchange(shards, epoch, first, self._decide_if_alive())
        try:
            with self._doing(request, exchange):
                estimator = beginning(exchange)
            name = self._files.write_model(estimator._saved())
            if not estimator._engine_model.updatable:
                exchange = self._without_rows(exchange, generation)
            decision = Decision(
                1 if before is None else before.number + 1,
                exchange.done,
                generation,
                exchange.shards.n_shards,
                name,
                estimator._next_id,
                _latest_classes(estimator),
                estimator._engine_model.node_half(),
                Request(request, NO_IDS, NO_IDS),
                () if before is None else _earlier(before),
            )
            self._write(decision, before)
        except OutcomeUnknownError:
            self._exchange = None  # the files show which model it is
            raise
        except BaseException:
            with contextlib.suppress(Exception):
                shards.close()
            with contextlib.suppress(Exception):
                self._folder.inside(generation).clear()
            raise
        former, self._exchange = self._exchange, exchange
        self._epoch, self._decision, self._estimator = epoch, decision, estimator
        try:
            if former is not None:
                former.shards.close()
            self._files.remove_others(decision)
        except Exception as error:  # the operation is done
            warnings.warn(
                f"Files of former shards could not be removed ({error}). The next process that "
                f"uses {self._folder} tries again.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _without_rows(self, exchange: ShardExchange, generation: str) -> ShardExchange:
        """End the shards of a model that holds no rows, and remove their files."""
        exchange.shards.close()
        self._folder.inside(generation).clear()
        shards = self._host.open(0, generation)
        empty = ShardExchange(shards, exchange.epoch, exchange.done, self._decide_if_alive())
        empty.traffic = exchange.traffic
        return empty

    # --- recovery ---------------------------------------------------------------------------------

    def _ensure_recovered(self) -> None:
        """Continue with the model of the files, if there is one and that was not done yet."""
        if self._exchange is not None:
            try:
                self._exchange.check()
            except OutcomeUnknownError:
                self._exchange = None
        if self._exchange is None and self._files.latest():
            self._recover()

    def _recover(self) -> None:
        decision = self._take_over()
        epoch = decision.number
        shards = self._host.open(decision.n_shards, decision.generation)
        exchange = ShardExchange(shards, epoch, decision.operation, self._decide_if_alive())
        exchange.settle()
        estimator = restored(self._files.read_model(decision), "the model of the shards")
        _attach(estimator, exchange)
        self._epoch, self._decision, self._exchange = epoch, decision, exchange
        self._estimator = estimator
        self._reports.clear()
        self._host.close_others(decision.generation)
        self._files.remove_others(decision)
        self._forget_categories()  # which a call that was cut off may have left to do

    def _take_over(self) -> Decision:
        """Decide that nothing changes; from then on, no former node half can decide anything."""
        for _ in range(MOST_ATTEMPTS):
            # A former node half may decide something meanwhile, and remove what was decided before.
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                decision = self._files.read_decision(self._files.latest()).next()
                self._files.write_decision(decision)
                return decision
        raise ShardError(
            f"Another process keeps changing the model in {self._folder}. Let one process use it."
        )

    def fitted(self) -> Estimator:
        """Return the model."""
        self._ensure_recovered()
        if self._estimator is None:
            raise RuntimeError("there is no model yet. Call fit.")
        return self._estimator

    def _known_exchange(self) -> ShardExchange:
        self.fitted()
        assert self._exchange is not None
        return self._exchange

    def _known_decision(self) -> Decision:
        self.fitted()
        assert self._decision is not None
        return self._decision

    # --- operations -------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """A text that is another one after each change."""
        return "" if self._decision is None else str(self._decision.operation)

    def call(self, request: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the estimator that changes it.

        A request that was decided before the node half was lost is not done again. Its report is
        lost, and a `Request` is returned.
        """
        estimator = self.fitted()
        before = self._known_decision()
        known = before.about_request(request)
        if known is not None:
            return self._reports.get(request, known)
        columns = estimator._columns
        removed = NO_IDS
        if method == "remove":
            removed = estimator._ids_to_remove(arguments[0], "row_ids")
            arguments = (removed, *arguments[1:])
        elif named.get("remove") is not None:
            removed = estimator._ids_to_remove(named["remove"], "remove")
            named = {**named, "remove": removed}
        self._request = Request(request, NO_IDS, removed)
        self._given_ids = named.get("row_ids")
        exchange = self._known_exchange()
        try:
            with self._doing(request, exchange):
                result = getattr(estimator, method)(*arguments, **named)
        finally:
            self._request = None
        exchange.check()  # raises if another process is the node half now
        if request:
            self._reports[request] = None if result is estimator else result
            while len(self._reports) > MOST_REQUESTS:
                del self._reports[next(iter(self._reports))]
        if _differ(estimator._columns, columns):
            with contextlib.suppress(OSError):  # done again by the next node half
                self._write_model()
        return result

    def interrupt(self, request: str) -> None:
        """Let the operation under way fail at its next message, if it is for this request.

        Called by another thread than all other methods.
        """
        self._interrupted = request
        if self._current == request and self._working is not None:
            self._working.is_interrupted = True

    @contextlib.contextmanager
    def _doing(self, request: str, exchange: ShardExchange) -> Iterator[None]:
        """Let `interrupt` end what is done for a request."""
        exchange.is_interrupted = False
        self._current, self._working = request, exchange
        if request and request == self._interrupted:
            exchange.is_interrupted = True
        try:
            yield
        finally:
            self._current, self._working = "", None
            exchange.is_interrupted = False

    def _decide_if_alive(self) -> Callable[[Operation, bytes], None]:
        # The engine model keeps the exchange, which must not keep the model in turn.
        decide = weakref.WeakMethod(self._decide)

        def decide_if_alive(operation: Operation, node_half: bytes) -> None:
            method = decide()
            assert method is not None
            method(operation, node_half)

        return decide_if_alive

    def _decide(self, operation: Operation, node_half: bytes) -> None:
        before = self._decision
        if self._request is None or before is None:
            return  # a model begins: `_begin_once` decides that
        assert self._estimator is not None
        next_id = self._estimator._next_id
        added = np.arange(before.next_id, next_id, dtype=np.int64)
        if self._given_ids is not None:
            added = np.asarray(self._given_ids, np.int64).reshape(-1)
        decision = before.next(
            operation=operation,
            next_id=next_id,
            classes=_latest_classes(self._estimator),
            node_half=node_half,
            request=replace(self._request, added_ids=added),
            earlier=_earlier(before),
        )
        self._write(decision, before)
        self._decision = decision

    def _write(self, decision: Decision, before: Decision | None) -> None:
        try:
            self._files.write_decision(decision)
        except FileExistsError as error:
            if self._exchange is not None:
                self._exchange.give_up()
            raise ShardError(
                "Another process has become the node half of this model. This call has changed "
                "nothing. Call again."
            ) from error
        except UncertainError as error:
            self._take_back(decision, before, error)
            raise
        if self._files.latest() != decision.number:
            # A process that has taken over may have seen this decision, or not.
            if self._exchange is not None:
                self._exchange.give_up()
            raise OutcomeUnknownError(REPLACED)
        with contextlib.suppress(OSError):  # done again by the next node half
            self._files.remove_before(decision)

    def _take_back(
        self, decision: Decision, before: Decision | None, failure: UncertainError
    ) -> None:
        """Decide that everything is as before."""
        try:
            if before is None:
                self._files.remove(decision)
            else:
                self._decision = replace(before, number=decision.number + 1)
                self._files.write_decision(self._decision)
        except OSError:
            if self._exchange is not None:
                self._exchange.give_up()
            raise OutcomeUnknownError(
                f"It is not known whether the change was made: {failure}. The next call finds "
                "out; compare row_ids_ before you repeat this one."
            ) from failure

    def _write_model(self) -> None:
        """Write the columns and parameters, which an operation or `_forget_categories` changed."""
        before = self._known_decision()
        decision = before.next(model=self._files.write_model(self.fitted()._saved()))
        self._write(decision, before)
        self._decision = decision
        self._files.remove_others(decision)

    def _forget_categories(self) -> None:
        estimator = self.fitted()
        columns = estimator._columns
        estimator._forget_categories()
        if _differ(estimator._columns, columns):
            self._write_model()

    def compact(self) -> None:
        """Write the rows of all shards as they are; files with removed rows are erased."""
        self._forget_categories()
        exchange, before = self._known_exchange(), self._known_decision()
        exchange.call_all("compact")
        decision = before.without_ids()
        self._write(decision, before)
        self._decision = decision
        self._reports.clear()

    @property
    def traffic(self) -> Traffic:
        """What was exchanged with the present shards since this process has used them."""
        return self._known_exchange().traffic

    # --- reading ----------------------------------------------------------------------------------

    def read_rows(self, version: str, message: bytes) -> Answers:
        """Answer a message that only reads. Raises `ChangedError` if the model has changed."""
        exchange = self._known_exchange()
        if self.version != version:
            raise ChangedError("the model has changed while its rows were being read")
        return exchange(message, READ, b"")


def _attach(estimator: Estimator, exchange: ShardExchange) -> None:
    if estimator._engine_model.updatable:
        estimator._engine_model.attach(exchange)


def _differ(columns: Columns, others: Columns) -> bool:
    return columns is not others and columns.to_plain() != others.to_plain()


def _latest_classes(estimator: Estimator) -> Any:
    classes = getattr(estimator, "_classes", None)
    return classes[max(classes)] if classes else None


def _earlier(decision: Decision) -> tuple[str, ...]:
    if decision.request is None:
        return decision.earlier
    return (*decision.earlier, decision.request.name)[-MOST_REQUESTS:]
