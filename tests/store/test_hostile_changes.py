"""Changes in a journal whose checksums are valid and whose content is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from graftboost import GraftBoostClassifier
from graftboost.store import Store

from .hostile_content import (
    NAN,
    NEW_CLASS,
    Arrays,
    Header,
    Hostile,
    assert_journal_refused,
    both,
    set_array,
    set_header,
    set_parameter,
    set_receipt,
    set_rule,
    without,
)
from .stores import N_ROWS, SMALL, drop_last_receipt, files, make_model, make_rows, write_files

X, _ = make_rows(7, 4)


def _forgetting(**entries: Any) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        set_receipt(forgetting={**header["receipt"]["forgetting"], **entries})(header, arrays)

    return change


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


IN_JOURNAL: dict[str, Hostile] = {
    # Class codes, which are indices.
    "a class beyond": set_array("added_y", [7, 0, 1, 0]),
    "a class far beyond": set_array("added_y", [1e9, 0, 1, 0]),
    "a class below": set_array("added_y", [-3, 0, 1, 0]),
    "half a class": set_array("added_y", [0.5, 0, 1, 0]),
    "a missing class": set_array("added_y", [np.nan, 0, 1, 0]),
    "an infinite class": set_array("added_y", [np.inf, 0, 1, 0]),
    # The codes of classes.
    "relabel beyond": set_header(classes=NEW_CLASS, relabel=[10**6, -(10**6)]),
    "relabel twice": set_header(classes=NEW_CLASS, relabel=[1, 1]),
    "relabel out of order": set_header(classes=NEW_CLASS, relabel=[2, 1]),
    "relabel too short": set_header(classes=NEW_CLASS, relabel=[1]),
    "relabel none": set_header(classes=NEW_CLASS, relabel=[]),
    "relabel too long": set_header(relabel=[0, 1, 2]),
    "relabel by halves": set_header(relabel=[0, 1.5]),
    "relabel no list": set_header(relabel="01"),
    "a class that no row has": both(
        set_header(classes=NEW_CLASS, relabel=[1, 2]), set_array("added_y", [1, 2, 1, 2])
    ),
    "other classes": set_header(classes={"array": ["<U3", ["no", "YES"]]}),
    "fewer classes": set_header(classes={"array": ["<U3", ["no"]]}, relabel=[0]),
    "no classes": set_header(classes=None, relabel=[]),
    "classes in a table": set_header(classes={"array": ["<U3", [["no", "yes"]]]}),
    "classes of no type": set_header(classes={"array": ["|V8", ["no", "yes"]]}),
    # Lengths and types.
    "y too short": set_array("added_y", [0.0]),
    "y of another type": set_array("added_y", [0, 0, 1, 0], np.int64),
    "weights too short": set_array("added_weight", [2.0]),
    "ids too many": set_array("added_ids", [200, 201, 202, 203, 204], np.int64),
    "ids of another type": set_array("added_ids", [200, 201, 202, 203]),
    "no rows": both(
        set_array("added_ids", [], np.int64), set_array("added_y", []), set_array("added_X", [])
    ),
    "X too short": set_array("added_X", np.zeros(15)),
    "X of another type": set_array("added_X", np.zeros(16), np.int32),
    "too few features": both(set_header(n_features=2), set_array("added_X", np.zeros(8))),
    "too many features": both(set_header(n_features=300), set_array("added_X", np.zeros(1200))),
    "no features": both(set_header(n_features=0), set_array("added_X", [])),
    "features by a name": set_header(n_features="4"),
    "removed of another type": set_array("removed", [1.0]),
    "no removed": without("removed"),
    "no y": without("added_y"),
    "an array too many": set_array("added_z", [1.0]),
    # Values.
    "an id twice": set_array("added_ids", [200, 200, 202, 203], np.int64),
    "an id that is held": set_array("added_ids", [5, 201, 202, 203], np.int64),
    "X infinite": set_array("added_X", np.full(16, np.inf)),
    "a negative weight": set_array("added_weight", [-1, 1, 1, 1]),
    "a missing weight": set_array("added_weight", [np.nan, 1, 1, 1]),
    "an infinite weight": set_array("added_weight", [np.inf, 1, 1, 1]),
    # The rule and the parameters.
    "an unknown rule": set_rule(name="luck"),
    "a missing tolerance": set_rule(tolerance=NAN),
    "a negative tolerance": set_rule(tolerance=-1.0),
    "another tolerance": set_rule(tolerance=5.0),
    "a missing fidelity": set_rule(fidelity=NAN),
    "a negative fidelity": set_rule(fidelity=-0.1),
    "a fidelity beyond": set_rule(fidelity=1.5),
    "a fidelity by a name": set_rule(fidelity="high"),
    "a fidelity none": set_rule(fidelity=None),
    "a missing floor": set_rule(memory_floor=NAN),
    "a negative floor": set_rule(memory_floor=-1.0),
    "another floor": set_rule(memory_floor=5.0),
    "a rule of other parameters": set_rule(name="regret", fidelity=0.0, memory_floor=0.0),
    "regrow by a name": set_rule(regrow="later"),
    "regrow by a number": set_rule(regrow=0),
    "regrow none": set_rule(regrow=None),
    "regrow that does not apply": both(
        set_parameter(update_rule="regret", tolerance=3.0),
        set_rule(name="regret", fidelity=0.0, memory_floor=0.0, tolerance=3.0, top_candidates=308),
        set_rule(regrow=False),
    ),
    "work of an update": set_header(work=0.5),
    "a fidelity that does not apply": both(
        set_parameter(update_rule="regret", tolerance=3.0),
        set_rule(name="regret", fidelity=0.5, memory_floor=0.0, tolerance=3.0, top_candidates=308),
    ),
    "places beyond": set_rule(top_candidates=2**80),
    "no place": set_rule(top_candidates=0),
    "half a place": set_rule(top_candidates=1.5),
    "a rule with more": set_rule(more=1),
    "a rule that is none": set_header(rule=7),
    "an unknown parameter": set_parameter(luck=1),
    "a parameter of the fit": set_parameter(max_bins=3),
    "no tolerance": set_parameter(tolerance=NAN),
    "a tolerance that does not apply": set_parameter(tolerance=1.0),
    "another rule": set_parameter(update_rule="rank"),
    "an unknown rule of the parameters": set_parameter(update_rule="luck"),
    "no fidelity": set_parameter(fidelity=NAN),
    "fidelity beyond": set_parameter(fidelity=1.5),
    "fidelity by a name": set_parameter(fidelity="high"),
    "no floor": set_parameter(memory_floor=NAN),
    "negative floor": set_parameter(memory_floor=-1.0),
    "infinite floor": set_parameter(memory_floor={"float": "inf"}),
    "a floor beyond": set_parameter(memory_floor=10**400),
    "threads beyond": set_parameter(n_jobs=2**40),
    "threads by a name": set_parameter(n_jobs="all"),
    "negative memory": set_parameter(stats_memory=-1),
    "parameters none": set_header(parameters=None),
    # The rest of the header.
    "negative seconds": set_header(seconds=-1.0),
    "seconds by a name": set_header(seconds="1"),
    "another kind": set_header(kind="model"),
    "nested too deeply": set_header(classes={"array": ["<U3", _nested(700)]}),
    "attributes that are not kept": set_header(
        attributes={"who": {"array": ["<i8", [1, 2, 3, 4]]}}
    ),
    "attributes none": set_header(attributes=None),
    "an action of no journal": set_receipt(action="create"),
    "a receipt of a refit": set_receipt(action="refit"),
    "a receipt of other rows": set_receipt(added=[[500, 504]]),
    "a receipt of removed rows": set_receipt(removed=[[5, 6]], edges="supplied"),
    "a receipt of no ranges": set_receipt(added=[[5]]),
    "a receipt of ranges beyond": set_receipt(added=[[0, 2**70]]),
    "a receipt of ranges backwards": set_receipt(added=[[204, 200]]),
    "a receipt that was changed": set_receipt(seal=False, request="somebody else's"),
    "a receipt of another number": set_receipt(number=7),
    "a receipt of another model": set_receipt(before="0" * 64),
    "a receipt of no forgetting": set_receipt(forgetting={}),
    "a receipt of forgetting by a name": set_receipt(forgetting="all"),
    "a receipt of forgetting beyond": _forgetting(achieved=10**400),
    "a receipt of half a row": _forgetting(rows_remembered=0.5),
    "a receipt of forgetting of some rows only": _forgetting(rows_remembered=None),
    "a receipt of rows that are regrown": set_receipt(deferred=True),
    "a receipt of deferral by a name": set_receipt(deferred="yes"),
    "a receipt of deferral by a number": set_receipt(deferred=1),
    "a receipt of half a row deferred": set_receipt(rows_deferred=0.5),
    "a receipt of negative rows deferred": set_receipt(rows_deferred=-1),
    "a receipt of regrowing": set_receipt(action="regrow"),
    "a receipt with more": set_header(receipt={"more": 1}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("stores") / "store"
    with Store.create(path, make_model()) as store:
        store.add(X, ["yes", "no", "yes", "no"])
    drop_last_receipt(path)
    return files(path)


@pytest.mark.parametrize("what", IN_JOURNAL)
def test_hostile_changes(tmp_path: Path, made: dict[str, bytes], what: str) -> None:
    write_files(tmp_path, made)
    assert_journal_refused(tmp_path, IN_JOURNAL[what])


@pytest.mark.parametrize(
    "target", [[np.nan, 0, 0, 0], [np.inf, 0, 0, 0], [1e300, 0, 0, 0]], ids=str
)
def test_hostile_targets(path: Path, target: list[float]) -> None:
    with Store.create(path, make_model("regressor")) as store:
        store.add(X, [0.0, 1.0, 0.0, 1.0])
    drop_last_receipt(path)
    assert_journal_refused(path, set_array("added_y", target))


@pytest.mark.parametrize(
    "hostile",
    [
        set_array("added_columns", [0, 1, 2, 900], np.int32),
        set_array("added_columns", [0, 1, 2, -1], np.int32),
        set_array("added_columns", [2, 1, 0, 3], np.int32),
        set_array("added_columns", [0, 0, 0, 0], np.int32),
        set_array("added_columns", [0, 1, 2], np.int32),
        set_array("added_columns", [0, 1, 2, 2**40], np.int64),
        set_array("added_begin", [0, 4], np.int64),
        set_array("added_begin", [0, 4, 9], np.int64),
        set_array("added_begin", [1, 2, 4], np.int64),
        set_array("added_begin", [0, 9, 4], np.int64),
        set_array("added_begin", [0, 2**62, 4], np.int64),
        set_array("added_X", [1.0, 2.0]),
        set_array("added_X", [np.inf, 1.0, 1.0, 1.0]),
        without("added_begin"),
        without("added_columns"),
    ],
)
def test_hostile_sparse_rows(path: Path, hostile: Hostile) -> None:
    rng = np.random.default_rng(0)
    table = scipy.sparse.random(N_ROWS, 5, 0.5, format="csr", random_state=rng)
    model = GraftBoostClassifier(**SMALL).fit(table, np.arange(N_ROWS) % 2)
    row = scipy.sparse.csr_array(np.array([[1.0, 2.0, 0, 0, 0], [0, 0, 3.0, 4.0, 0]]))
    with Store.create(path, model) as store:
        store.add(row, [0, 1])
    drop_last_receipt(path)
    assert_journal_refused(path, hostile)


@pytest.mark.parametrize(
    "values",
    [
        {"who": {"array": ["<i8", [1]]}},
        {"who": {"array": ["<f4", [1, 2, 3, 4]]}},
        {"who": {"array": ["|O", ["a", "b", "c", [1]]]}},
        {"who": {"array": ["|O", ["a", "b", "c", 5]]}},
        {"who": ["a", "b", "c", "d"]},
        {"whom": {"array": ["|O", ["a", "b", "c", "d"]]}},
        {},
    ],
    ids=str,
)
def test_hostile_attributes_of_a_change(path: Path, values: Any) -> None:
    with Store.create(path, make_model(), attributes={"who": ["x"] * N_ROWS}) as store:
        store.add(X, ["yes", "no", "yes", "no"], attributes={"who": ["a", "b", "c", "d"]})
    drop_last_receipt(path)
    assert_journal_refused(path, set_header(attributes=values))
