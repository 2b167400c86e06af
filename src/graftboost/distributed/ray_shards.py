"""Shards as actors of Ray."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray import exceptions
from ray.util import list_named_actors

from graftboost._engine import add_sums
from graftboost.distributed.errors import OutOfStepError, ShardLostError
from graftboost.distributed.folder import open_folder
from graftboost.distributed.model_files import shard_folder
from graftboost.distributed.ray_waiting import (
    LEAST_LOAD,
    PULSE,
    SECONDS_TO_START,
    Alive,
    pulses_of,
)
from graftboost.distributed.shard import Shard
from graftboost.distributed.shards import Answers, combine

NAMESPACE = "graftboost"
# With more shards, answers are added up on their way: each shard adds those of so many others.
FAN_IN = 4
FEW = 4
LARGE = 100_000  # bytes


class ShardActor(Alive):
    """A shard in a process of its own."""

    def __init__(
        self, index: int, n_shards: int, storage: str, generation: str, n_threads: int
    ) -> None:
        folder = shard_folder(open_folder(storage), generation, index)
        self._shard = Shard(index, n_shards, folder, n_threads)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the shard."""
        return getattr(self._shard, method)(*arguments)

    # Ray takes a millisecond for a call, and a good part of it for each argument and result. Bytes
    # are the exception.

    def call_packed(self, call: bytes) -> bytes:
        """Call a method; the arguments and the result are packed."""
        method, arguments = pickle.loads(call)
        return pickle.dumps(self.call(method, *arguments))

    def answer(self, call: bytes, *others: bytes) -> bytes:
        """Answer a message, and combine it with the combined answers of other shards."""
        method, arguments = pickle.loads(call)
        sums, rows = self.call(method, *arguments)
        answers = [pickle.loads(other) for other in others]
        if answers:
            sums = add_sums([sums, *(of_others for of_others, _ in answers)])
        return pickle.dumps((sums, [rows, *(row for _, of_others in answers for row in of_others)]))


class RayShards:
    """Shards as named actors, which outlive whoever started them.

    Parameters
    ----------
    name : str
        The name of the model.
    storage : str
        The folder of the model's files.
    generation : str
        The name of these shards, and of the folder of their files.
    n_shards : int
        The number of shards.
    resources : dict
        Options of each actor, such as ``{"num_cpus": 4}``.
    timeout : float
        Seconds after which a shard that makes no progress counts as lost.
    """

    def __init__(
        self,
        name: str,
        storage: str,
        generation: str,
        n_shards: int,
        resources: dict[str, Any],
        timeout: float,
    ) -> None:
        self.n_shards = n_shards
        self._name = name
        self._storage = storage
        self._generation = generation
        self._resources = resources
        self._timeout = timeout
        self._actors = [self._start(index) for index in range(n_shards)]
        self._started: set[int] = set()

    def _start(self, index: int) -> Any:
        n_cpus = int(ray.cluster_resources().get("CPU", 0))
        # One for each shard, if that leaves one for whatever else runs there.
        options = {"num_cpus": int(n_cpus > self.n_shards), **self._resources}
        n_threads = max(int(options["num_cpus"]), 1)
        actor = ray.remote(concurrency_groups={PULSE: 1})(ShardActor).options(
            name=f"{prefix_of(self._name)}{self._generation}:shard-{index}",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            scheduling_strategy="SPREAD",
            **options,
        )
        return actor.remote(index, self.n_shards, self._storage, self._generation, n_threads)

    # --- calls --------------------------------------------------------------------------------

    def call(self, index: int, method: str, *arguments: Any) -> Any:
        """See `Shards`."""
        return self._results({index: self._actors[index].call.remote(method, *arguments)})[0]

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """See `Shards`."""
        call = _packed(method, arguments)
        asked = {index: actor.call_packed.remote(call) for index, actor in enumerate(self._actors)}
        return [pickle.loads(result) for result in self._results(asked)]

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Shards`."""
        return self._results(
            {
                index: actor.call.remote(method, *arguments[index])
                for index, actor in enumerate(self._actors)
            }
        )

    def answer_all(self, method: str, *arguments: Any) -> Answers:
        """See `Shards`."""
        if self.n_shards > FEW:
            # A call can be made again. If this fails, asking each shard shows which one is lost.
            with contextlib.suppress(exceptions.RayError):
                return self._answer_by_tree(_packed(method, arguments))
        return combine(self.call_all(method, *arguments))

    def _answer_by_tree(self, call: Any) -> Answers:
        """Let each shard add the answers of others to its own."""
        refs: list[Any] = [None] * self.n_shards
        for index in reversed(range(self.n_shards)):
            others = refs[FAN_IN * index + 1 : FAN_IN * index + FAN_IN + 1]
            refs[index] = self._actors[index].answer.remote(call, *others)
        sums, rows = pickle.loads(ray.get(refs[0], timeout=self._timeout))
        return [sums], rows

    # --- results ------------------------------------------------------------------------------

    def _results(self, asked: dict[int, Any]) -> list[Any]:
        with contextlib.suppress(exceptions.RayError):
            results = list(ray.get(list(asked.values()), timeout=self._timeout))
            self._started.update(asked)
            return results
        stuck = self._wait(dict(asked))
        results = []
        lost = None
        for index, ref in asked.items():
            try:
                if index in stuck:
                    raise ShardLostError(index, stuck[index])
                results.append(self._result(index, ref))
            except ShardLostError as error:
                lost = error
        if lost is not None:
            raise lost
        return results

    def _wait(self, waiting: dict[int, Any]) -> dict[int, str]:
        """Wait until all have answered or make no progress; return why the latter are lost."""
        stuck: dict[int, str] = {}
        used: dict[int, float] = {}
        while True:
            _, left = ray.wait(
                list(waiting.values()), num_returns=len(waiting), timeout=self._timeout
            )
            waiting = {index: ref for index, ref in waiting.items() if ref in set(left)}
            if not waiting:
                return stuck
            patience = self._timeout
            if waiting.keys() - self._started:
                patience = max(patience, SECONDS_TO_START)
            pulses = pulses_of({index: self._actors[index] for index in waiting}, patience)
            self._started.update(pulses)
            for index, now in pulses.items():
                if now is None:
                    stuck[index] = f"it did not answer within {patience:g} s"
                elif index in used and now - used[index] < LEAST_LOAD * self._timeout:
                    stuck[index] = f"it has made no progress for {self._timeout:g} s"
                else:
                    used[index] = now
                    continue
                # It must not answer later.
                ray.kill(self._actors[index], no_restart=False)
                del waiting[index]
            if not waiting:
                return stuck

    def _result(self, index: int, ref: Any) -> Any:
        try:
            return ray.get(ref)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, OutOfStepError):
                raise ShardLostError(index, "its process was started again") from error
            raise error.cause from None
        except (exceptions.RayActorError, exceptions.ObjectLostError) as error:
            raise ShardLostError(index, "its process has ended") from error

    # --- restarts -----------------------------------------------------------------------------

    def restart(self, index: int) -> None:
        """See `Shards`."""
        # Ray starts an actor again that has ended. One that was ended for good is made anew.
        self._started.discard(index)
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            try:
                ray.get(self._actors[index].pulse.remote(), timeout=SECONDS_TO_START)
                return
            except exceptions.ActorDiedError:
                with contextlib.suppress(ValueError):  # its name is still taken
                    self._actors[index] = self._start(index)
            except (exceptions.RayActorError, exceptions.GetTimeoutError):
                pass
            time.sleep(0.1)
        raise ShardLostError(index, self._why_not_started())

    def _why_not_started(self) -> str:
        free = ray.available_resources().get("CPU", 0)
        return (
            f"it could not be started within {SECONDS_TO_START:g} s. The cluster has "
            f"{ray.cluster_resources().get('CPU', 0):g} CPUs, of which {free:g} are free, and "
            f"resources_per_shard is {self._resources}"
        )

    def close(self) -> None:
        """See `Shards`."""
        for actor in self._actors:
            ray.kill(actor)


class RayHost:
    """Runs the shards of one model as actors. The parameters are those of `RayShards`."""

    def __init__(self, name: str, storage: str, resources: dict[str, Any], timeout: float) -> None:
        self._name = name
        self._storage = storage
        self._resources = resources
        self._timeout = timeout

    def open(self, n_shards: int, generation: str) -> RayShards:
        """See `ShardHost`."""
        return RayShards(
            self._name, self._storage, generation, n_shards, self._resources, self._timeout
        )

    def close_others(self, generation: str) -> None:
        """See `ShardHost`."""
        mine = prefix_of(self._name)
        for actor in list_named_actors(all_namespaces=True):
            name = actor["name"]
            is_mine = actor["namespace"] == NAMESPACE and name.startswith(mine)
            if is_mine and name.removeprefix(mine).split(":")[0] != generation:
                with contextlib.suppress(ValueError):  # it has ended
                    ray.kill(ray.get_actor(name, namespace=NAMESPACE))


def prefix_of(name: str) -> str:
    """Return how the names of the actors of a model's shards begin."""
    return f"graftboost:{name}:"


def _packed(method: str, arguments: tuple[Any, ...]) -> Any:
    """Return a call as bytes; if they are many, in the object store, from which all fetch them."""
    call = pickle.dumps((method, arguments))
    return ray.put(call) if len(call) > LARGE else call
