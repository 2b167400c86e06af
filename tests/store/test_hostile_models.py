"""Models in a store whose checksums are valid and whose content is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Store

from .hostile_content import (
    NAN,
    Arrays,
    Header,
    Hostile,
    assert_model_refused,
    set_array,
    set_header,
    set_parameter,
)
from .stores import N_ROWS, make_model, make_rows, reseal_model


def _store(**entries: Any) -> Hostile:
    return lambda header, arrays: header["store"].update(entries)


def _recorded(value: int) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        largest = np.iinfo(arrays["tree_recorded"].dtype)  # of two bytes or of four
        arrays["tree_recorded"][:] = np.clip(value, largest.min, largest.max)

    return change


IN_MODEL: dict[str, Hostile] = {
    "a negative number": _store(number=-1),
    "a number by a name": _store(number="1"),
    "a receipt of no hash": _store(receipt="zz"),
    "a digest of no hash": _store(digest=7),
    "a receipt nowhere": _store(receipt_at=[0, 2**70]),
    "a receipt backwards": _store(receipt_at=[700, 20]),
    "a receipt at half a byte": _store(receipt_at=[0, 700.5]),
    "a receipt that the log has not": _store(receipt_at=[0, 20]),
    "notes none": _store(notes=7),
    "attributes of no kind": _store(attributes={"who": "colour"}),
    "attributes without rows": _store(attributes={"who": "int64"}),
    "later ids of another type": set_array("store_later_ids", [1.0]),
    "later ids that do not ascend": set_array("store_later_ids", [5, 5], np.int64),
    "no next id": set_header(next_id=None),
    "a next id by a name": set_header(next_id="7"),
    "a next id beyond": set_header(next_id=2**70),
    "an unknown rule": set_parameter(update_rule="luck"),
    "no tolerance": set_parameter(tolerance=NAN),
    "no fidelity": set_parameter(fidelity=NAN),
    "fidelity beyond": set_parameter(fidelity=1.5),
    "fidelity by a name": set_parameter(fidelity="high"),
    "no floor": set_parameter(memory_floor=NAN),
    "negative floor": set_parameter(memory_floor=-1.0),
    "infinite floor": set_parameter(memory_floor={"float": "inf"}),
    "threads by a name": set_parameter(n_jobs="all"),
    "memory by a name": set_parameter(stats_memory="all"),
    "bins by a name": set_parameter(max_bins="many"),
    "no share": set_parameter(split_sample=NAN),
    "edges by a name": set_parameter(bin_edges="all"),
}


@pytest.mark.parametrize("what", IN_MODEL)
def test_hostile_headers(path: Path, what: str) -> None:
    Store.create(path, make_model()).close()
    assert_model_refused(path, IN_MODEL[what], "is damaged")


@pytest.mark.parametrize("lengths", [[-2] * N_ROWS, [2**62] * N_ROWS, [1], [0] * N_ROWS])
def test_hostile_texts(path: Path, lengths: list[int]) -> None:
    Store.create(path, make_model(), attributes={"who": ["x"] * N_ROWS}).close()
    assert_model_refused(path, set_array("attribute_0_lengths", lengths, np.int64))


GRADIENTS = [2**31 - 1, -(2**31), 2**30 + 1]


@pytest.mark.parametrize("value", GRADIENTS)
@pytest.mark.parametrize("compacts", [False, True])
def test_hostile_gradients_of_weighted_rows(path: Path, value: int, compacts: bool) -> None:
    """Their sums overflow; `load` refuses the same file."""
    X, y = make_rows(0, N_ROWS)
    model = make_model("regressor").fit(X, y, np.linspace(1, 2, N_ROWS))
    with Store.create(path, model) as store:
        store.remove([1])
        if compacts:
            store.compact()
    reseal_model(path, _recorded(value))
    told = r"model-00000\d\.graft is damaged.*recorded a gradient out of range"
    with pytest.raises(InvalidFileError, match=told), Store.open(path) as store:
        store.remove([2])
    with pytest.raises(InvalidFileError, match=told), Store.open(path) as store:
        store.verify()


@pytest.mark.parametrize("value", GRADIENTS)
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_hostile_gradients_of_unweighted_rows(path: Path, value: int, kind: str) -> None:
    """Their sums do not overflow; `verify` finds that they are wrong."""
    Store.create(path, make_model(kind)).close()
    reseal_model(path, _recorded(value))
    with Store.open(path) as store:
        with pytest.raises(RuntimeError, match="do not match the training rows"):
            store.verify()
        store.remove([2])
        store.refit()
        store.verify()


def test_attributes_of_other_rows(path: Path) -> None:
    Store.create(path, make_model(), attributes={"who": np.arange(N_ROWS)}).close()
    reseal_model(path, set_array("attribute_ids", np.arange(N_ROWS) + 1, np.int64))
    with Store.open(path) as store, pytest.raises(RuntimeError, match="do not match its rows"):
        store.verify()
