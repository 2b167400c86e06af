"""Waiting for actors of Ray without waiting for ever."""

from __future__ import annotations

import time
from typing import Any

import ray
from ray import exceptions

PULSE = "pulse"  # the group of methods that are answered while others are at work
LEAST_LOAD = 0.01  # of one CPU, of a process that makes progress
SECONDS_TO_START = 60.0  # a process, at most


class Alive:
    """An actor that tells that it is there while it is at work on something else."""

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def pulse(self) -> float:
        """Return how many seconds of CPU time this process has used."""
        return time.process_time()


def pulses_of(actors: dict[int, Any], timeout: float) -> dict[int, float | None]:
    """Return the CPU time of each actor, or None for those that do not answer in time.

    An actor whose process has ended has no place in the result: other calls of it fail as well.
    """
    asked = {index: actor.pulse.remote() for index, actor in actors.items()}
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=timeout)
    found: dict[int, float | None] = {}
    for index, ref in asked.items():
        try:
            found[index] = ray.get(ref, timeout=0)
        except exceptions.GetTimeoutError:
            found[index] = None
        except exceptions.RayActorError:
            continue
    return found


def has_started(actor: Any) -> bool:
    """Wait until Ray has started the process of an actor, or started it again."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        try:
            ray.get(actor.pulse.remote(), timeout=SECONDS_TO_START)
            return True
        except exceptions.GetTimeoutError:
            return False
        except exceptions.RayActorError:
            time.sleep(0.1)
    return False
