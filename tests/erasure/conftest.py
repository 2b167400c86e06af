"""What makes many searches quick."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _known_objects() -> Iterator[None]:
    """Have the garbage collector look at what tests make, not at all that was imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
