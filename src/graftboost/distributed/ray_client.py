"""The node half of a model, as drivers see it."""

from __future__ import annotations

import time
import uuid
import warnings
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from graftboost.distributed.errors import ChangedError, OutcomeUnknownError, ShardError
from graftboost.distributed.ray_coordinator import CoordinatorActor
from graftboost.distributed.ray_shards import NAMESPACE, RayHost
from graftboost.distributed.ray_waiting import PULSE, SECONDS_TO_START, has_started, pulses_of
from graftboost.distributed.shards import Answers
from graftboost.estimators.progress import ProgressLine

MOST_CALLS = 5  # of one request, if the process of the node half ends again and again
MOST_READINGS = 3  # of all rows, if the model changes meanwhile


class RayClient:
    """Calls the actor that owns the node half of a model.

    A call that is cut off because the process has ended is sent again when it is back, and is not
    done twice.

    Parameters
    ----------
    name : str
        The name of the model.
    actor : ActorHandle
        The actor.
    timeout : float
        Seconds after which an actor that does not answer counts as lost.
    """

    def __init__(self, name: str, actor: Any, timeout: float) -> None:
        self.name = name
        self._actor = actor
        self._timeout = timeout

    @classmethod
    def start(cls, name: str, storage: str, resources: dict[str, Any], timeout: float) -> RayClient:
        """Start the node half of a new model."""
        options = {
            "name": _actor_name(name),
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "max_restarts": -1,
            "num_cpus": 0,
        }
        actor_class = ray.remote(concurrency_groups={PULSE: 2})(CoordinatorActor)
        try:
            actor = actor_class.options(**options).remote(name, storage, resources, timeout)
        except ValueError as error:
            raise ValueError(
                f"There is a model {name!r} in this cluster already. Pass another name, or call "
                "connect and use that model, or call its shutdown()."
            ) from error
        return cls(name, actor, timeout)

    @classmethod
    def find(cls, name: str, timeout: float) -> RayClient:
        """Return the client of a model that another driver has started."""
        try:
            actor = ray.get_actor(_actor_name(name), namespace=NAMESPACE)
        except ValueError as error:
            raise ValueError(
                f"There is no model {name!r} in this cluster. Pass the name_ of a model that was "
                "not shut down."
            ) from error
        return cls(name, actor, timeout)

    # --- calls ------------------------------------------------------------------------------------

    def read(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the actor that does not change the model, and may be called twice."""
        return self._ask(method, arguments, named, ShardError)

    def change(
        self,
        method: str,
        *arguments: Any,
        request: str = "",
        line: ProgressLine | None = None,
        **named: Any,
    ) -> Any:
        """Call a method of the actor that changes the model."""
        request = request or uuid.uuid4().hex
        try:
            result, noted = self._ask(
                method, (request, *arguments), named, OutcomeUnknownError, line
            )
        except KeyboardInterrupt:
            # The change is undone at the next message, unless it is decided by then.
            self._ask("interrupt", (request,), {}, OutcomeUnknownError)
            self._ask("version_now", (), {}, OutcomeUnknownError)
            raise
        for message, category in noted:
            warnings.warn(message, category, stacklevel=4)
        return result

    def _ask(
        self,
        method: str,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        failure: type[Exception],
        line: ProgressLine | None = None,
    ) -> Any:
        for _ in range(MOST_CALLS):
            ref = getattr(self._actor, method).remote(*arguments, **named)
            try:
                return self._result(ref, failure, line)
            except (exceptions.RayActorError, exceptions.ObjectLostError) as error:
                self._check_there(failure)
                if not has_started(self._actor):
                    raise failure(
                        f"The process of the node half of model {self.name!r} has ended, and could "
                        f"not be started again within {SECONDS_TO_START:g} s. Its files are "
                        "complete. Check that the machines of the cluster are running, then call "
                        "again."
                    ) from error
        raise failure(
            f"The process of the node half of model {self.name!r} has ended {MOST_CALLS} times "
            "during this call. Check the memory and the logs of its machine. Its files are "
            "complete; the next call continues with them."
        )

    def _check_there(self, failure: type[Exception]) -> None:
        """Raise if the actor was ended for good."""
        try:
            ray.get_actor(_actor_name(self.name), namespace=NAMESPACE)
        except ValueError:
            raise failure(
                f"Model {self.name!r} was shut down. Its files are complete: call connect with its "
                "storage to start it again."
            ) from None

    def _result(self, ref: Any, failure: type[Exception], line: ProgressLine | None) -> Any:
        wait = self._timeout if line is None else min(self._timeout, 0.5)
        last = time.monotonic()
        while True:
            try:
                return ray.get(ref, timeout=wait)
            except exceptions.GetTimeoutError as error:
                if isinstance(error, exceptions.RayTaskError):
                    raise error.cause from None
            except exceptions.RayTaskError as error:
                raise error.cause from None
            if line is not None:
                self._show_progress(line)
            if time.monotonic() - last < self._timeout:
                continue
            patience = max(self._timeout, SECONDS_TO_START)  # it may be starting
            if pulses_of({0: self._actor}, patience).get(0, 0) is None:
                raise failure(
                    f"The node half of model {self.name!r} did not answer within {patience:g} s. "
                    "Its files are complete. Check that the machines of the cluster are running, "
                    "then call again."
                )
            last = time.monotonic()

    def _show_progress(self, line: ProgressLine) -> None:
        try:
            n_done, loss = ray.get(self._actor.progress.remote(), timeout=self._timeout)
        except exceptions.RayError:  # the call itself will tell
            return
        if n_done:
            line.on_iteration(n_done, loss)

    # --- rows -------------------------------------------------------------------------------------

    def read_rows(self, version: str, message: bytes) -> Answers:
        """Answer a message that reads rows of a version of the model."""
        answers: Answers = self.read("read_rows", version, message)
        return answers

    def while_unchanged(self, read: Any) -> Any:
        """Call a function that reads all rows, again if the model has changed meanwhile."""
        for left in reversed(range(MOST_READINGS)):
            try:
                return read()
            except ChangedError as error:
                if not left:
                    raise ShardError(
                        f"Model {self.name!r} has changed {MOST_READINGS} times while its rows "
                        "were being read. Call again when nobody updates it."
                    ) from error
        raise AssertionError

    # --- the end ----------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """End the processes of the model. Its files stay."""
        # In this order, because a call of another driver might start shards again.
        ray.kill(self._actor)
        RayHost(self.name, "", {}, self._timeout).close_others("")


def _actor_name(name: str) -> str:
    return f"graftboost:{name}"


def absolute(storage: str) -> str:
    """Return the storage as processes with another working directory find it."""
    return storage if "://" in storage else str(Path(storage).absolute())
