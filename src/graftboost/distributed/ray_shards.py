"""Shards as actors of Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray import exceptions

from graftboost.distributed.errors import OutOfStepError, ShardLostError
from graftboost.distributed.folder import open_folder
from graftboost.distributed.shard import Shard
from graftboost.distributed.shards import combine

NAMESPACE = "graftboost"
# With more shards, answers are added up on their way: each shard adds those of so many others.
FAN_IN = 4
FEW = 8


class ShardActor:
    """A shard in a process of its own."""

    def __init__(self, index: int, n_shards: int, storage: str, n_threads: int) -> None:
        self._shard = Shard(index, n_shards, open_folder(storage), n_threads)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the shard."""
        return getattr(self._shard, method)(*arguments)

    def answer(
        self, method: str, arguments: tuple[Any, ...], *others: Any
    ) -> tuple[NDArray[np.uint64], list[bytes]]:
        """Answer a message, and add the combined answers of other shards."""
        sums, rows = combine([getattr(self._shard, method)(*arguments)])
        if others:
            sums = sums.copy()
        for more, of_others in others:
            np.add(sums, more, out=sums)
            rows = rows + of_others
        return sums, rows

    def ping(self) -> bool:
        """Tell that the process is there."""
        return True


class RayShards:
    """Shards as named actors, which outlive whoever started them.

    Parameters
    ----------
    name : str
        The name of the model.
    n_shards : int
        The number of shards.
    storage : str
        The folder of the shards' files.
    resources : dict
        Options of each actor, such as ``{"num_cpus": 4}``.
    timeout : float
        Seconds after which a shard that does not answer counts as lost.
    """

    def __init__(
        self, name: str, n_shards: int, storage: str, resources: dict[str, Any], timeout: float
    ) -> None:
        self.n_shards = n_shards
        self._name = name
        self._storage = storage
        self._resources = resources
        self._timeout = timeout
        self._actors = [self._start(index) for index in range(n_shards)]

    def _start(self, index: int) -> Any:
        n_cpus = int(ray.cluster_resources().get("CPU", 0))
        # One for each shard, if that leaves one for whatever else runs there.
        options = {"num_cpus": int(n_cpus > self.n_shards), **self._resources}
        n_threads = max(int(options["num_cpus"]), 1)
        actor = ray.remote(ShardActor).options(
            name=f"{self._name}:shard-{index}",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            scheduling_strategy="SPREAD",
            **options,
        )
        storage = f"{self._storage}/shard-{index}"
        return actor.remote(index, self.n_shards, storage, n_threads)

    # --- calls --------------------------------------------------------------------------------

    def call(self, index: int, method: str, *arguments: Any) -> Any:
        """See `Shards`."""
        return self._result(index, self._actors[index].call.remote(method, *arguments))

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """See `Shards`."""
        shared = [ray.put(argument) if _is_large(argument) else argument for argument in arguments]
        return self.call_each(method, [tuple(shared)] * self.n_shards)

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Shards`."""
        return self._results(
            lambda index: self._actors[index].call.remote(method, *arguments[index])
        )

    def answer_all(self, method: str, *arguments: Any) -> tuple[NDArray[np.uint64], list[bytes]]:
        """See `Shards`."""
        if self.n_shards <= FEW:
            return combine(self.call_all(method, *arguments))
        refs: list[Any] = [None] * self.n_shards
        for index in reversed(range(self.n_shards)):
            others = refs[FAN_IN * index + 1 : FAN_IN * index + FAN_IN + 1]
            refs[index] = self._actors[index].answer.remote(method, arguments, *others)
        try:
            answer: tuple[NDArray[np.uint64], list[bytes]] = self._result(0, refs[0])
        except ShardLostError:
            self._find_lost()
            raise
        return answer

    def _results(self, ask: Callable[[int], Any]) -> list[Any]:
        refs = [ask(index) for index in range(self.n_shards)]
        results, lost = [], None
        for index, ref in enumerate(refs):
            try:
                results.append(self._result(index, ref))
            except ShardLostError as error:
                lost = error
        if lost is not None:
            raise lost
        return results

    def _result(self, index: int, ref: Any) -> Any:
        try:
            return ray.get(ref, timeout=self._timeout)
        except exceptions.GetTimeoutError as error:
            # It may be at work on something else, and must not answer later.
            ray.kill(self._actors[index], no_restart=False)
            raise ShardLostError(index, f"it did not answer within {self._timeout:g} s") from error
        except exceptions.RayTaskError as error:
            if isinstance(error, OutOfStepError) or isinstance(error.cause, OutOfStepError):
                raise ShardLostError(index, "its process was started again") from error
            raise error.cause from None
        except exceptions.RayActorError as error:
            raise ShardLostError(index, "its process has ended") from error

    def _find_lost(self) -> None:
        """Raise `ShardLostError` for the shard that is lost, if one does not answer at all."""
        self._results(lambda index: self._actors[index].ping.remote())

    # --- restarts -----------------------------------------------------------------------------

    def restart(self, index: int) -> None:
        """See `Shards`."""
        # Ray starts an actor again that has ended. One that was ended for good is made anew.
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                ray.get(self._actors[index].ping.remote(), timeout=self._timeout)
                return
            except exceptions.GetTimeoutError as error:
                raise ShardLostError(index, "it could not be started again") from error
            except exceptions.RayActorError as error:
                if time.monotonic() > deadline:
                    raise ShardLostError(index, "it could not be started again") from error
                time.sleep(0.1)
                try:
                    self._actors[index] = self._start(index)
                except ValueError:  # its name is still taken
                    continue

    def close(self) -> None:
        """See `Shards`."""
        for actor in self._actors:
            ray.kill(actor)


def _is_large(argument: Any) -> bool:
    """Tell whether an argument is worth to be sent to each machine only once."""
    return isinstance(argument, bytes) and len(argument) > 100_000
