"""A fixture that makes searches of memory faster."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _known_objects() -> Iterator[None]:
    """Let the garbage collector skip all objects that exist before the tests."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
