"""Files with valid checksums and invalid content, which does not reach the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from graftboost import GraftBoostClassifier
from graftboost.persistence import file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Store
from graftboost.store.receipts import Receipt

from .stores import (
    N_ROWS,
    SMALL,
    journal_of,
    make_model,
    make_rows,
    records,
    reseal_journal,
    reseal_model,
)

Header, Arrays = dict[str, Any], dict[str, Any]
Hostile = Callable[[Header, Arrays], Any]
X, _ = make_rows(7, 4)
NEW_CLASS = {"array": ["<U5", ["maybe", "no", "yes"]]}


def _set(array: str, values: Any, dtype: Any = float) -> Hostile:
    return lambda header, arrays: arrays.update({array: np.array(values, dtype=dtype)})


def _say(**entries: Any) -> Hostile:
    return lambda header, arrays: header.update(entries)


def _without(name: str) -> Hostile:
    return lambda header, arrays: (arrays if name in arrays else header).pop(name)


def _rule(**entries: Any) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        rule = {**dict(header["rule"]["dict"]), **entries}
        header["rule"] = {"dict": [list(pair) for pair in rule.items()]}

    return change


def _parameter(**entries: Any) -> Hostile:
    return lambda header, arrays: header["parameters"].update(entries)


def _receipt(seal: bool = True, **entries: Any) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        content = {**header["receipt"], **entries}
        if seal:
            content["hash"] = Receipt(**{**content, "hash": ""}).computed_hash()
        header["receipt"] = content

    return change


def _forgetting(**entries: Any) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        _receipt(forgetting={**header["receipt"]["forgetting"], **entries})(header, arrays)

    return change


def _both(*changes: Hostile) -> Hostile:
    return lambda header, arrays: [change(header, arrays) for change in changes]


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


NAN = {"float": "nan"}
IN_JOURNAL: dict[str, Hostile] = {
    # Class codes, which are indices.
    "a class beyond": _set("added_y", [7, 0, 1, 0]),
    "a class far beyond": _set("added_y", [1e9, 0, 1, 0]),
    "a class below": _set("added_y", [-3, 0, 1, 0]),
    "half a class": _set("added_y", [0.5, 0, 1, 0]),
    "a missing class": _set("added_y", [np.nan, 0, 1, 0]),
    "an infinite class": _set("added_y", [np.inf, 0, 1, 0]),
    # The codes of classes.
    "relabel beyond": _say(classes=NEW_CLASS, relabel=[10**6, -(10**6)]),
    "relabel twice": _say(classes=NEW_CLASS, relabel=[1, 1]),
    "relabel out of order": _say(classes=NEW_CLASS, relabel=[2, 1]),
    "relabel too short": _say(classes=NEW_CLASS, relabel=[1]),
    "relabel none": _say(classes=NEW_CLASS, relabel=[]),
    "relabel too long": _say(relabel=[0, 1, 2]),
    "relabel by halves": _say(relabel=[0, 1.5]),
    "relabel no list": _say(relabel="01"),
    "a class that no row has": _both(
        _say(classes=NEW_CLASS, relabel=[1, 2]), _set("added_y", [1, 2, 1, 2])
    ),
    "other classes": _say(classes={"array": ["<U3", ["no", "YES"]]}),
    "fewer classes": _say(classes={"array": ["<U3", ["no"]]}, relabel=[0]),
    "no classes": _say(classes=None, relabel=[]),
    "classes in a table": _say(classes={"array": ["<U3", [["no", "yes"]]]}),
    "classes of no type": _say(classes={"array": ["|V8", ["no", "yes"]]}),
    # Lengths and types.
    "y too short": _set("added_y", [0.0]),
    "y of another type": _set("added_y", [0, 0, 1, 0], np.int64),
    "weights too short": _set("added_weight", [2.0]),
    "ids too many": _set("added_ids", [200, 201, 202, 203, 204], np.int64),
    "ids of another type": _set("added_ids", [200, 201, 202, 203]),
    "no rows": _both(_set("added_ids", [], np.int64), _set("added_y", []), _set("added_X", [])),
    "X too short": _set("added_X", np.zeros(15)),
    "X of another type": _set("added_X", np.zeros(16), np.int32),
    "too few features": _both(_say(n_features=2), _set("added_X", np.zeros(8))),
    "too many features": _both(_say(n_features=300), _set("added_X", np.zeros(1200))),
    "no features": _both(_say(n_features=0), _set("added_X", [])),
    "features by a name": _say(n_features="4"),
    "removed of another type": _set("removed", [1.0]),
    "no removed": _without("removed"),
    "no y": _without("added_y"),
    "an array too many": _set("added_z", [1.0]),
    # Values.
    "an id twice": _set("added_ids", [200, 200, 202, 203], np.int64),
    "an id that is held": _set("added_ids", [5, 201, 202, 203], np.int64),
    "X infinite": _set("added_X", np.full(16, np.inf)),
    "a negative weight": _set("added_weight", [-1, 1, 1, 1]),
    "a missing weight": _set("added_weight", [np.nan, 1, 1, 1]),
    "an infinite weight": _set("added_weight", [np.inf, 1, 1, 1]),
    # The rule and the parameters.
    "an unknown rule": _rule(name="luck"),
    "a missing tolerance": _rule(tolerance=NAN),
    "a negative tolerance": _rule(tolerance=-1.0),
    "another tolerance": _rule(tolerance=5.0),
    "a missing fidelity": _rule(fidelity=NAN),
    "a negative fidelity": _rule(fidelity=-0.1),
    "a fidelity beyond": _rule(fidelity=1.5),
    "a fidelity by a name": _rule(fidelity="high"),
    "a fidelity none": _rule(fidelity=None),
    "a missing floor": _rule(memory_floor=NAN),
    "a negative floor": _rule(memory_floor=-1.0),
    "another floor": _rule(memory_floor=5.0),
    "a rule of other parameters": _rule(name="regret", fidelity=0.0, memory_floor=0.0),
    "regrow by a name": _rule(regrow="later"),
    "regrow by a number": _rule(regrow=0),
    "regrow none": _rule(regrow=None),
    "regrow that does not apply": _both(
        _parameter(update_rule="regret", tolerance=3.0),
        _rule(name="regret", fidelity=0.0, memory_floor=0.0, tolerance=3.0, top_candidates=308),
        _rule(regrow=False),
    ),
    "work of an update": _say(work=0.5),
    "a fidelity that does not apply": _both(
        _parameter(update_rule="regret", tolerance=3.0),
        _rule(name="regret", fidelity=0.5, memory_floor=0.0, tolerance=3.0, top_candidates=308),
    ),
    "places beyond": _rule(top_candidates=2**80),
    "no place": _rule(top_candidates=0),
    "half a place": _rule(top_candidates=1.5),
    "a rule with more": _rule(more=1),
    "a rule that is none": _say(rule=7),
    "an unknown parameter": _parameter(luck=1),
    "a parameter of the fit": _parameter(max_bins=3),
    "no tolerance": _parameter(tolerance=NAN),
    "a tolerance that does not apply": _parameter(tolerance=1.0),
    "another rule": _parameter(update_rule="rank"),
    "an unknown rule of the parameters": _parameter(update_rule="luck"),
    "no fidelity": _parameter(fidelity=NAN),
    "fidelity beyond": _parameter(fidelity=1.5),
    "fidelity by a name": _parameter(fidelity="high"),
    "no floor": _parameter(memory_floor=NAN),
    "negative floor": _parameter(memory_floor=-1.0),
    "infinite floor": _parameter(memory_floor={"float": "inf"}),
    "a floor beyond": _parameter(memory_floor=10**400),
    "threads beyond": _parameter(n_jobs=2**40),
    "threads by a name": _parameter(n_jobs="all"),
    "negative memory": _parameter(stats_memory=-1),
    "parameters none": _say(parameters=None),
    # The rest of the header.
    "negative seconds": _say(seconds=-1.0),
    "seconds by a name": _say(seconds="1"),
    "another kind": _say(kind="model"),
    "nested too deeply": _say(classes={"array": ["<U3", _nested(700)]}),
    "attributes that are not kept": _say(attributes={"who": {"array": ["<i8", [1, 2, 3, 4]]}}),
    "attributes none": _say(attributes=None),
    "an action of no journal": _receipt(action="create"),
    "a receipt of a refit": _receipt(action="refit"),
    "a receipt of other rows": _receipt(added=[[500, 504]]),
    "a receipt of removed rows": _receipt(removed=[[5, 6]], edges="supplied"),
    "a receipt of no ranges": _receipt(added=[[5]]),
    "a receipt of ranges beyond": _receipt(added=[[0, 2**70]]),
    "a receipt of ranges backwards": _receipt(added=[[204, 200]]),
    "a receipt that was changed": _receipt(seal=False, request="somebody else's"),
    "a receipt of another number": _receipt(number=7),
    "a receipt of another model": _receipt(before="0" * 64),
    "a receipt of no forgetting": _receipt(forgetting={}),
    "a receipt of forgetting by a name": _receipt(forgetting="all"),
    "a receipt of forgetting beyond": _forgetting(achieved=10**400),
    "a receipt of half a row": _forgetting(rows_remembered=0.5),
    "a receipt of forgetting of some rows only": _forgetting(rows_remembered=None),
    "a receipt of rows that are regrown": _receipt(deferred=True),
    "a receipt of deferral by a name": _receipt(deferred="yes"),
    "a receipt of deferral by a number": _receipt(deferred=1),
    "a receipt of half a row deferred": _receipt(rows_deferred=0.5),
    "a receipt of negative rows deferred": _receipt(rows_deferred=-1),
    "a receipt of regrowing": _receipt(action="regrow"),
    "a receipt with more": _say(receipt={"more": 1}),
}


def _unlogged(path: Path) -> None:
    """Remove the receipt of the last change, as if its writer had been killed before writing it."""
    log = path / "receipts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("stores") / "store"
    with Store.create(path, make_model()) as store:
        store.add(X, ["yes", "no", "yes", "no"])
    _unlogged(path)
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("what", IN_JOURNAL)
def test_hostile_changes(tmp_path: Path, made: dict[str, bytes], what: str) -> None:
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    reseal_journal(tmp_path, lambda header, arrays: None)
    Store.open(tmp_path, read_only=True).close()  # it is valid before it is manipulated
    reseal_journal(tmp_path, IN_JOURNAL[what])
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match=r"journal-000001\.graft is damaged"):
            Store.open(tmp_path, read_only=read_only)


REGROWING: dict[str, Hostile] = {
    "an unknown rule": _rule(name="luck"),
    "another rule": _rule(name="regret"),
    "another rule that follows from its parameters": _both(
        _parameter(update_rule="regret", tolerance=3.0),
        _rule(name="regret", fidelity=0.0, memory_floor=0.0, tolerance=3.0, top_candidates=308),
    ),
    "a rule that does not regrow": _rule(regrow=False),
    "regrow by a number": _rule(regrow=1),
    "a missing fidelity": _rule(fidelity=NAN),
    "a fidelity beyond": _rule(fidelity=1.5),
    "another floor": _rule(memory_floor=5.0),
    "a tolerance": _rule(tolerance=1.0),
    "a rule with more": _rule(more=1),
    "no rule": _without("rule"),
    "no work": _without("work"),
    "work none": _say(work=None),
    "work of zero": _say(work=0.0),
    "negative work": _say(work=-0.5),
    "infinite negative work": _say(work={"float": "-inf"}),
    "missing work": _say(work=NAN),
    "work by a name": _say(work="all"),
    "work by a count": _say(work=1),
    "work by a boolean": _say(work=True),
    "work in a list": _say(work=[0.5]),
    "rows": _set("removed", [1], np.int64),
    "another array": _set("added_y", [1.0]),
    "features": _say(n_features=4),
    "classes": _say(classes=NEW_CLASS),
    "a parameter of the fit": _parameter(max_bins=3),
    "parameters none": _say(parameters=None),
    "a receipt of an update": _receipt(action="update"),
    "a receipt of a refit": _receipt(action="refit"),
    "a receipt of a creation": _receipt(action="create"),
    "a receipt of an unknown action": _receipt(action="regrown"),
    "a receipt of another model": _receipt(before="0" * 64),
    "a receipt of half a row deferred": _receipt(rows_deferred=0.5),
}


@pytest.fixture(scope="module")
def regrown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("stores") / "store"
    with Store.create(path, make_model()) as store:
        store.remove([1, 2, 3], regrow=False)
        store.regrow(0.5)
    _unlogged(path)
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("what", REGROWING)
def test_hostile_regrowing(tmp_path: Path, regrown: dict[str, bytes], what: str) -> None:
    for name, content in regrown.items():
        (tmp_path / name).write_bytes(content)
    reseal_journal(tmp_path, lambda header, arrays: None)
    Store.open(tmp_path, read_only=True).close()  # it is valid before it is manipulated
    reseal_journal(tmp_path, REGROWING[what])
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match=r"journal-000001\.graft is damaged"):
            Store.open(tmp_path, read_only=read_only)


def test_regrowing_of_nothing(tmp_path: Path) -> None:
    """A change that regrows nodes although no rows are deferred changes nothing."""
    path = tmp_path / "store"
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
    reseal_journal(path, _receipt(**entries))
    for _ in range(2):
        _unlogged(path)
    with Store.open(path, read_only=True) as store:
        assert store.digest == found
        assert store.summary()["rows_not_yet_regrown"] == 0
        store.verify()


@pytest.mark.parametrize(
    "target", [[np.nan, 0, 0, 0], [np.inf, 0, 0, 0], [1e300, 0, 0, 0]], ids=str
)
def test_hostile_targets(tmp_path: Path, target: list[float]) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model("regressor")) as store:
        store.add(X, [0.0, 1.0, 0.0, 1.0])
    _unlogged(path)
    reseal_journal(path, _set("added_y", target))
    with pytest.raises(InvalidFileError, match=r"journal-000001\.graft is damaged"):
        Store.open(path)


@pytest.mark.parametrize(
    "hostile",
    [
        _set("added_columns", [0, 1, 2, 900], np.int32),
        _set("added_columns", [0, 1, 2, -1], np.int32),
        _set("added_columns", [2, 1, 0, 3], np.int32),
        _set("added_columns", [0, 0, 0, 0], np.int32),
        _set("added_columns", [0, 1, 2], np.int32),
        _set("added_columns", [0, 1, 2, 2**40], np.int64),
        _set("added_begin", [0, 4], np.int64),
        _set("added_begin", [0, 4, 9], np.int64),
        _set("added_begin", [1, 2, 4], np.int64),
        _set("added_begin", [0, 9, 4], np.int64),
        _set("added_begin", [0, 2**62, 4], np.int64),
        _set("added_X", [1.0, 2.0]),
        _set("added_X", [np.inf, 1.0, 1.0, 1.0]),
        _without("added_begin"),
        _without("added_columns"),
    ],
)
def test_hostile_sparse_rows(tmp_path: Path, hostile: Hostile) -> None:
    rng = np.random.default_rng(0)
    table = scipy.sparse.random(N_ROWS, 5, 0.5, format="csr", random_state=rng)
    model = GraftBoostClassifier(**SMALL).fit(table, np.arange(N_ROWS) % 2)
    path = tmp_path / "store"
    row = scipy.sparse.csr_array(np.array([[1.0, 2.0, 0, 0, 0], [0, 0, 3.0, 4.0, 0]]))
    with Store.create(path, model) as store:
        store.add(row, [0, 1])
    _unlogged(path)
    Store.open(path, read_only=True).close()
    reseal_journal(path, hostile)
    with pytest.raises(InvalidFileError, match=r"journal-000001\.graft is damaged"):
        Store.open(path)


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
def test_hostile_attributes_of_a_change(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model(), attributes={"who": ["x"] * N_ROWS}) as store:
        store.add(X, ["yes", "no", "yes", "no"], attributes={"who": ["a", "b", "c", "d"]})
    _unlogged(path)
    Store.open(path, read_only=True).close()
    reseal_journal(path, _say(attributes=values))
    with pytest.raises(InvalidFileError, match=r"journal-000001\.graft is damaged"):
        Store.open(path)


# --- the model ------------------------------------------------------------------------------------


def _store(**entries: Any) -> Hostile:
    return lambda header, arrays: header["store"].update(entries)


def _in_model(**entries: Any) -> Hostile:
    return lambda header, arrays: header["parameters"].update(entries)


def _recorded(value: int) -> Hostile:
    def change(header: Header, arrays: Arrays) -> None:
        arrays["tree_recorded"][:] = value

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
    "later ids of another type": _set("store_later_ids", [1.0]),
    "later ids that do not ascend": _set("store_later_ids", [5, 5], np.int64),
    "no next id": _say(next_id=None),
    "a next id by a name": _say(next_id="7"),
    "a next id beyond": _say(next_id=2**70),
    "an unknown rule": _in_model(update_rule="luck"),
    "no tolerance": _in_model(tolerance=NAN),
    "no fidelity": _in_model(fidelity=NAN),
    "fidelity beyond": _in_model(fidelity=1.5),
    "fidelity by a name": _in_model(fidelity="high"),
    "no floor": _in_model(memory_floor=NAN),
    "negative floor": _in_model(memory_floor=-1.0),
    "infinite floor": _in_model(memory_floor={"float": "inf"}),
    "threads by a name": _in_model(n_jobs="all"),
    "memory by a name": _in_model(stats_memory="all"),
    "bins by a name": _in_model(max_bins="many"),
    "no share": _in_model(split_sample=NAN),
    "edges by a name": _in_model(bin_edges="all"),
}


@pytest.mark.parametrize("what", IN_MODEL)
def test_hostile_headers(tmp_path: Path, what: str) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    reseal_model(path, IN_MODEL[what])
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match="is damaged"):
            Store.open(path, read_only=read_only)


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
    "rows of another type": _set("deferred_rows", [1, 0, 0, 0]),
    "rows too short": _set("deferred_rows", [1, 0, 0], np.int64),
    "sums too short": _set("node_deferred", [1, 0, 0], np.int64),
    "no sums": _without("node_deferred"),
}


@pytest.mark.parametrize("what", DEFERRED)
def test_hostile_deferred_rows(tmp_path: Path, what: str) -> None:
    path = tmp_path / "store"
    model = make_model()
    model.remove([1, 2, 3], regrow=False)
    Store.create(path, model).close()
    reseal_model(path, lambda header, arrays: None)
    Store.open(path, read_only=True).close()
    reseal_model(path, DEFERRED[what])
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match=r"model-000001\.graft is damaged"):
            Store.open(path, read_only=read_only)


@pytest.mark.parametrize("lengths", [[-2] * N_ROWS, [2**62] * N_ROWS, [1], [0] * N_ROWS])
def test_hostile_texts(tmp_path: Path, lengths: list[int]) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model(), attributes={"who": ["x"] * N_ROWS}).close()
    reseal_model(path, _set("attribute_0_lengths", lengths, np.int64))
    with pytest.raises(InvalidFileError, match=r"model-000001\.graft is damaged"):
        Store.open(path)


GRADIENTS = [2**31 - 1, -(2**31), 2**30 + 1]


@pytest.mark.parametrize("value", GRADIENTS)
@pytest.mark.parametrize("compacts", [False, True])
def test_hostile_gradients_of_weighted_rows(tmp_path: Path, value: int, compacts: bool) -> None:
    """Their sums overflow; `load` refuses the same file."""
    path = tmp_path / "store"
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
def test_hostile_gradients_of_unweighted_rows(tmp_path: Path, value: int, kind: str) -> None:
    """Their sums do not overflow; `verify` finds that they are wrong."""
    path = tmp_path / "store"
    Store.create(path, make_model(kind)).close()
    reseal_model(path, _recorded(value))
    with Store.open(path) as store:
        with pytest.raises(RuntimeError, match="do not match the training rows"):
            store.verify()
        store.remove([2])
        store.refit()
        store.verify()


def test_attributes_of_other_rows(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model(), attributes={"who": np.arange(N_ROWS)}).close()
    reseal_model(path, _set("attribute_ids", np.arange(N_ROWS) + 1, np.int64))
    with Store.open(path) as store, pytest.raises(RuntimeError, match="do not match its rows"):
        store.verify()
