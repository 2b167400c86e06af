"""What is left of a removed row: nothing, in the bytes of a model and in the memory it works in."""

from __future__ import annotations

import os
import pickle
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from graftboost._engine import Forest

from .making import LOSSES, Data, fit_forest, make_data, update_forest

ROW = 17


def remove(forest: Forest, data: Data, *ids: int, tolerance: float = 1.0) -> None:
    nothing = data.take(np.arange(0))
    update_forest(forest, nothing, np.array(ids, dtype=np.int64), tolerance=tolerance)


# --- in bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tolerance", [0.0, 1e12])
@pytest.mark.parametrize("others", [(), (3, 40, 118)])
def test_bytes_of_a_model_show_no_removed_row(
    loss: str, tolerance: float, others: tuple[int, ...]
) -> None:
    data = make_data(0, loss, weighted=True)
    rng = np.random.default_rng(0)
    data = Data(
        rng.normal(size=(120, 12)), data.y, data.weight, data.ids, (0,) * 12, loss
    )  # twelve bytes a row are as good as a name
    data.ids[ROW] = 0x0123_4567_89AB_CDEF
    data.weight[ROW] = 1.2345678901
    if loss == "squared":
        data.y[ROW] = 12.345678901
    forest = fit_forest(data, n_estimators=8)
    traces = {
        "id": data.ids[ROW].tobytes(),
        "weight": data.weight[ROW].tobytes(),
        "codes": forest.bins.encode(data.X[[ROW]]).astype(np.uint8).tobytes(),
    }
    if loss == "squared":
        traces["target"] = data.y[ROW].tobytes()
    for t in range(forest.n_trees):
        recorded = forest.recorded(t)
        if np.count_nonzero(recorded == recorded[ROW]) == 1:
            traces[f"gradient in tree {t}"] = recorded[[ROW - 1, ROW]].tobytes()
    assert len(traces) >= 4
    before = pickle.dumps(forest)
    assert [name for name, trace in traces.items() if trace not in before] == []
    remove(forest, data, int(data.ids[ROW]), *data.ids[list(others)].tolist(), tolerance=tolerance)
    after = pickle.dumps(forest)
    assert [name for name, trace in traces.items() if trace in after] == []


def test_bytes_of_a_model_show_no_row_that_came_and_went() -> None:
    data = make_data(0, "squared", weighted=True)
    forest = fit_forest(data.take(np.arange(100)))
    added = data.take(np.arange(100, 120))
    added.ids[7] = 0x0123_4567_89AB_CDEF
    update_forest(forest, added, np.empty(0, dtype=np.int64))
    traces = [added.ids[7].tobytes(), added.y[7].tobytes(), added.weight[7].tobytes()]
    assert all(trace in pickle.dumps(forest) for trace in traces)
    remove(forest, data, int(added.ids[7]))
    assert not any(trace in pickle.dumps(forest) for trace in traces)


# --- in memory ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Secret:
    """Eight bytes that are written down nowhere: they are the xor of two others."""

    one: np.uint64
    two: np.uint64

    @classmethod
    def make(cls, high: int) -> Secret:
        """Draw one whose upper 16 bits are given, as the sign and exponent of a float are."""
        one = secrets.randbits(64)
        return cls(np.uint64(one), np.uint64(one ^ (high << 48) ^ secrets.randbits(48)))

    def write(self, where: np.ndarray) -> None:
        np.bitwise_xor(np.full(1, self.one), self.two, out=where.view(np.uint64))

    def places(self) -> int:
        """How often it is in the memory of this process, but for the stack."""
        return sum(
            int(np.count_nonzero(np.bitwise_xor(words, self.one, out=words) == self.two))
            for words in words_in_memory()
        )


def words_in_memory() -> Iterator[np.ndarray]:
    """Go through the heap and what else was allocated, by way of a buffer that is left out."""
    buffer = np.zeros(1 << 17, dtype=np.uint64)
    first, last = buffer.ctypes.data, buffer.ctypes.data + buffer.nbytes
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, _, _, _, *name = line.split()
            if not rights.startswith("rw") or name not in ([], ["[heap]"]):
                continue
            at, end = (int(address, 16) for address in span.split("-"))
            while at < end:
                size = min(end - at, buffer.nbytes)
                memory.seek(at)
                size = memory.readinto(memoryview(buffer).cast("B")[:size]) or 0
                if size == 0:
                    break
                words = buffer[: size // 8]
                inside = slice(max(first - at, 0) // 8, max(last - at, 0) // 8)
                words[inside] = 0
                yield words
                buffer[:] = 0
                at += size


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="maps all there is")
@pytest.mark.parametrize("loss", ["softmax", "squared"])
@pytest.mark.parametrize("tolerance", [0.0, 1e12])
@pytest.mark.parametrize("row", [0, ROW, 2_999])
def test_memory_shows_no_removed_row(loss: str, tolerance: float, row: int) -> None:
    data = make_data(0, loss, n_rows=3_000, weighted=True)
    planted = {"id": (Secret.make(0x0123), data.ids), "weight": (Secret.make(0x3FF1), data.weight)}
    if loss == "squared":
        planted["target"] = (Secret.make(0x4021), data.y)
    for secret, values in planted.values():
        secret.write(values[row : row + 1])
    forest = fit_forest(data)
    for _, values in planted.values():
        values[row] = 0
    assert all(secret.places() == 1 for secret, _ in planted.values())  # the engine's own
    gone = np.zeros(1, dtype=np.int64)
    planted["id"][0].write(gone)
    update_forest(forest, data.take(np.arange(0)), gone, tolerance=tolerance)
    gone[:] = 0
    assert {name: secret.places() for name, (secret, _) in planted.items()} == dict.fromkeys(
        planted, 0
    )
    forest.check_state(n_threads=1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="maps all there is")
@pytest.mark.parametrize("n_fitted", [60, 3_000])
@pytest.mark.parametrize("added", [False, True])
def test_memory_shows_no_row_that_moved_before_it_was_removed(n_fitted: int, added: bool) -> None:
    """Arrays grow when rows are added, and what they leave behind is overwritten too."""
    data = make_data(0, "squared", n_rows=n_fitted + 5, weighted=True)
    data.weight[0] = data.weight.max() + 1
    held, into = data.take(np.arange(n_fitted)), data.take(np.arange(n_fitted, n_fitted + 5))
    target = into if added else held
    planted = {
        "id": (Secret.make(0x0123), target.ids),
        "weight": (Secret.make(0x3FF1), target.weight),
        "target": (Secret.make(0x4021), target.y),
    }
    for secret, values in planted.values():
        secret.write(values[2:3])
    forest = fit_forest(held)
    update_forest(forest, into, np.empty(0, dtype=np.int64), tolerance=1e12)
    for _, values in planted.values():
        values[:] = 0
    assert {name: secret.places() for name, (secret, _) in planted.items()} == dict.fromkeys(
        planted, 1
    )  # the engine's own
    gone = np.zeros(1, dtype=np.int64)
    planted["id"][0].write(gone)
    update_forest(forest, data.take(np.arange(0)), gone, tolerance=1e12)
    gone[:] = 0
    assert {name: secret.places() for name, (secret, _) in planted.items()} == dict.fromkeys(
        planted, 0
    )
    forest.check_state(n_threads=1)
