"""Regrowing and deferred rows whose checksums are valid and whose content is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graftboost.persistence import file_format
from graftboost.store import Store

from .hostile_content import (
    NAN,
    NEW_CLASS,
    Arrays,
    Header,
    Hostile,
    assert_journal_refused,
    assert_model_refused,
    both,
    set_array,
    set_header,
    set_parameter,
    set_receipt,
    set_rule,
    without,
)
from .stores import (
    drop_last_receipt,
    files,
    journal_of,
    make_model,
    records,
    reseal_journal,
    write_files,
)

# --- regrowing, in the journal --------------------------------------------------------------------

REGROWING: dict[str, Hostile] = {
    "an unknown rule": set_rule(name="luck"),
    "another rule": set_rule(name="regret"),
    "another rule that follows from its parameters": both(
        set_parameter(update_rule="regret", tolerance=3.0),
        set_rule(name="regret", fidelity=0.0, memory_floor=0.0, tolerance=3.0, top_candidates=308),
    ),
    "a rule that does not regrow": set_rule(regrow=False),
    "regrow by a number": set_rule(regrow=1),
    "a missing fidelity": set_rule(fidelity=NAN),
    "a fidelity beyond": set_rule(fidelity=1.5),
    "another floor": set_rule(memory_floor=5.0),
    "a tolerance": set_rule(tolerance=1.0),
    "a rule with more": set_rule(more=1),
    "no rule": without("rule"),
    "no work": without("work"),
    "work none": set_header(work=None),
    "work of zero": set_header(work=0.0),
    "negative work": set_header(work=-0.5),
    "infinite negative work": set_header(work={"float": "-inf"}),
    "missing work": set_header(work=NAN),
    "work by a name": set_header(work="all"),
    "work by a count": set_header(work=1),
    "work by a boolean": set_header(work=True),
    "work in a list": set_header(work=[0.5]),
    "rows": set_array("removed", [1], np.int64),
    "another array": set_array("added_y", [1.0]),
    "features": set_header(n_features=4),
    "classes": set_header(classes=NEW_CLASS),
    "a parameter of the fit": set_parameter(max_bins=3),
    "parameters none": set_header(parameters=None),
    "a receipt of an update": set_receipt(action="update"),
    "a receipt of a refit": set_receipt(action="refit"),
    "a receipt of a creation": set_receipt(action="create"),
    "a receipt of an unknown action": set_receipt(action="regrown"),
    "a receipt of another model": set_receipt(before="0" * 64),
    "a receipt of half a row deferred": set_receipt(rows_deferred=0.5),
}


@pytest.fixture(scope="module")
def regrown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("stores") / "store"
    with Store.create(path, make_model()) as store:
        store.remove([1, 2, 3], regrow=False)
        store.regrow(0.5)
    drop_last_receipt(path)
    return files(path)


@pytest.mark.parametrize("what", REGROWING)
def test_hostile_regrowing(tmp_path: Path, regrown: dict[str, bytes], what: str) -> None:
    write_files(tmp_path, regrown)
    assert_journal_refused(tmp_path, REGROWING[what])


def test_regrowing_of_nothing(path: Path) -> None:
    """A change that regrows nodes although no rows are deferred changes nothing."""
    with Store.create(path, make_model()) as store:
        store.remove([1, 2, 3], regrow=False)
        store.refit()
        found = store.digest
        store.remove([4], regrow=False)
        store.regrow(0.5)
    before, refitted, _, last = records(path)
    head = file_format.loads(refitted, "a record").header["receipt"]
    entries = {"number": 3, "before": found, "after": found, "previous": head["hash"]}
    journal_of(path).write_bytes(before + refitted + last)
    reseal_journal(path, set_receipt(**entries))
    for _ in range(2):
        drop_last_receipt(path)
    with Store.open(path, read_only=True) as store:
        assert store.digest == found
        assert store.summary()["rows_not_yet_regrown"] == 0
        store.verify()


# --- deferred rows, in the model ------------------------------------------------------------------


def _deferred(array: str, place: int, value: int) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        arrays[array][place] = value

    return change


DEFERRED: dict[str, Hostile] = {
    "a negative row": _deferred("deferred_rows", 0, -1),
    "no row": _deferred("deferred_rows", 0, 0),
    "rows beyond": _deferred("deferred_rows", 0, 2**63 - 1),
    "achieved beyond": _deferred("deferred_rows", 2, 2**63 - 1),
    "settled below": _deferred("deferred_rows", 3, -(2**63)),
    "a negative sum": _deferred("node_deferred", 1, -1),
    "a sum beyond": _deferred("node_deferred", 1, 2**62),
    "rows below a node without": _deferred("node_deferred", 0, 0),
    "rows of another type": set_array("deferred_rows", [1, 0, 0, 0]),
    "rows too short": set_array("deferred_rows", [1, 0, 0], np.int64),
    "sums too short": set_array("node_deferred", [1, 0, 0], np.int64),
    "no sums": without("node_deferred"),
}


@pytest.mark.parametrize("what", DEFERRED)
def test_hostile_deferred_rows(path: Path, what: str) -> None:
    model = make_model()
    model.remove([1, 2, 3], regrow=False)
    Store.create(path, model).close()
    assert_model_refused(path, DEFERRED[what])
