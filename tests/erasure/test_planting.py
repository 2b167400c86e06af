"""The checks of the other tests find a trace, and do not fail by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from . import needs_memory_scan
from .frozen_process import FrozenProcess, Mapping
from .memory_scan import Found, Place, Secret
from .planting import (
    CERTAIN,
    TRIES,
    Planted,
    assert_erased,
    assert_nothing_left,
    family,
    find_left,
    plant_at_fit,
)

pytestmark = needs_memory_scan


# --- what is found in memory ----------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [4, 8])
def test_a_number_in_freed_memory(n_bytes: int) -> None:
    def attempt(before: FrozenProcess) -> Found:
        wanted = {"number": Secret.draw(n_bytes, 0x0011)}
        numbers = np.zeros(1_000, dtype=f"<u{n_bytes}")
        wanted["number"].write(numbers[500:501])
        del numbers
        return find_left(wanted, before)

    with pytest.raises(AssertionError, match=r"left in \d+ tries: {'number': "):
        assert_nothing_left(attempt)


@pytest.mark.parametrize("name", ["integer weight", "gradient in tree 3", "id"])
def test_a_number_of_a_row_that_is_left(name: str) -> None:
    leaked: list[np.ndarray] = []

    def remove(planted: Planted) -> None:
        planted.remove(0)
        number = np.zeros(len(planted.secrets[name]), dtype=np.uint8)
        planted.secrets[name].write(number)
        leaked.append(number)

    n_tries = 1 if name == "id" else CERTAIN
    with pytest.raises(AssertionError, match=f"left in {n_tries} tries: .*'{family(name)}'"):
        assert_erased(lambda: plant_at_fit("regression"), remove)


@pytest.mark.parametrize("kind", ["regression", "sparse"])
def test_numbers_that_were_in_memory_before(kind: str) -> None:
    """The row indices of a large model have all values that the integer weight may have."""
    indices = np.arange(2_400_000, dtype=np.uint32)
    assert_erased(lambda: plant_at_fit(kind), lambda planted: planted.remove(0))
    del indices


# --- in how many tries ----------------------------------------------------------------------------


def attempts(results: Iterable[str]) -> Callable[[FrozenProcess], Found]:
    """Return a function that in turn finds a short number, a long one or none."""
    remaining = iter(results)

    def attempt(before: FrozenProcess) -> Found:
        result = next(remaining)
        nothing = np.zeros(0, dtype=np.uint8)
        place = Place(Mapping(0, 4096, ""), 0, result == "short", nothing, nothing)
        return {} if result == "none" else {f"{result} number in tree 3": [place]}

    return attempt


@pytest.mark.parametrize(
    ("results", "n_tries"),
    [
        (["long"], 1),
        (["short", "long"], 2),
        (["short"] * CERTAIN, CERTAIN),
        (["short", "none", "none"] * CERTAIN, 10),
    ],
)
def test_what_is_left_often_enough(results: list[str], n_tries: int) -> None:
    with pytest.raises(AssertionError, match=rf"left in {n_tries} tries: .*number': [14]"):
        assert_nothing_left(attempts(results))


@pytest.mark.parametrize(
    "results",
    [
        ["none"],
        ["short", *["none"] * (TRIES - CERTAIN + 1)],
        ["short", *["none"] * (TRIES - CERTAIN), "short", "none"],
    ],
)
def test_what_may_be_chance(results: list[str]) -> None:
    assert_nothing_left(attempts(results))
