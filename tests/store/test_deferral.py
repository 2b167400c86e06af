"""Deferred regrowing in a store: its changes, receipts and replay."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graftboost import GraftBoostClassifier
from graftboost.persistence import atomic_file, file_format, model_file
from graftboost.persistence.json_values import decode
from graftboost.store import Store, StoreError
from graftboost.store.receipts import find_break

from .stores import N_ROWS, files, journal_of, make_model, make_rows, records

X, _ = make_rows(5, 2)
LABELS = ["yes", "no"]
OUT = list(range(0, 60, 4))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def state(owner: Any) -> bytes:
    """Everything that a file stores of the model of a store or of an estimator."""
    saved = owner._state.saved if isinstance(owner, Store) else owner
    return model_file.pack_engine_model(getattr(saved, "_engine_model", None) or saved.engine_model)


def n_pending(store: Store) -> int:
    return int(store.summary()["rows_not_yet_regrown"])


def _defer(owner: Any, ids: list[int] = OUT) -> None:
    for row in ids:
        owner.remove([row], regrow=False)


def last_header(path: Path) -> dict[str, Any]:
    return file_format.loads(records(path)[-1], "journal").header


CHANGES: dict[str, Callable[..., Any]] = {
    "remove": lambda owner, **how: owner.remove([1, 2, 3], **how),
    "update": lambda owner, **how: owner.update(remove=[1, 2, 3], **how),
    "add": lambda owner, **how: owner.add(X, LABELS, **how),
    "both": lambda owner, **how: owner.update(X, LABELS, remove=[1, 2, 3], **how),
}

# --- the same as the estimator --------------------------------------------------------------------


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_change_equals_that_of_the_estimator(path: Path, name: str, loads: bool) -> None:
    model = make_model()
    Store.create(path, model).close()
    expected = CHANGES[name](model, regrow=False)
    with Store.open(path) as store:
        if loads:
            store.model  # noqa: B018
        report = CHANGES[name](store, regrow=False)
        assert report.rows_deferred == expected.rows_deferred == n_pending(store) > 0
        assert (report.strategy, report.nodes_regrown) == ("in-place", 0)
        assert state(store) == state(model)
        assert store.pending == model.pending_
        assert store.regrow().forgetting == model.regrow().forgetting
        assert state(store) == state(model)
        assert n_pending(store) == 0
        store.verify()


STEPS: dict[str, Callable[[Any], Any]] = {
    "remove later": _defer,
    "add later": lambda owner: owner.add(X, LABELS, regrow=False),
    "regrow a part": lambda owner: owner.regrow(0.05),
    "remove": lambda owner: owner.remove([101, 102]),
    "refresh": lambda owner: owner.refresh(),
    "update later": lambda owner: owner.update(X, LABELS, remove=[103], regrow=False),
    "regrow": lambda owner: owner.regrow(fidelity=0.7),
    "remove once more": lambda owner: owner.remove([104, 105], regrow=False),
    "refit": lambda owner: owner.refit(),
    "remove at last": lambda owner: owner.remove([106], regrow=False),
}


@pytest.mark.parametrize("between", ["nothing", "reopen", "compact", "both"])
def test_store_and_estimator_stay_identical(path: Path, between: str) -> None:
    model = make_model()
    store = Store.create(path, model)
    for step in STEPS.values():
        step(store)
        step(model)
        assert state(store) == state(model)
        if between in ("compact", "both"):
            store.compact()
        if between in ("reopen", "both"):
            store.close()
            store = Store.open(path)
        assert state(store) == state(model)
        assert store.pending == model.pending_
    store.verify()
    store.close()
    with Store.open(path, read_only=True) as reader:
        reader.verify()
        assert state(reader) == state(model)
        assert reader.pending == model.pending_
        assert find_break(reader.receipts()) is None


@pytest.mark.parametrize("compact_every", [1, 4, 100])
def test_compaction_by_itself(path: Path, compact_every: int) -> None:
    model = make_model()
    with Store.create(path, model, compact_every=compact_every) as store:
        for owner in (store, model):
            _defer(owner)
            owner.regrow(0.05)
            owner.regrow()
        assert state(store) == state(model)
        store.verify()


def test_store_of_a_model_with_deferred_rows(path: Path) -> None:
    model = make_model()
    _defer(model)
    with Store.create(path, model) as store:
        assert store.last_receipt.rows_deferred == len(OUT) == n_pending(store)
        assert not store.last_receipt.deferred
        assert "not yet regrown  15 rows" in str(store.last_receipt)
        assert store.pending == model.pending_
    with Store.open(path) as store:
        store.regrow()
        model.regrow()
        assert state(store) == state(model)
        assert store.regrown_by(store.receipt(0)) == store.receipt(1)


# --- receipts -------------------------------------------------------------------------------------


def test_receipts(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1, 2], request="ann", regrow=False)
        store.add(X, LABELS, regrow=False)
        store.remove([3])
        report = store.regrow(request="tonight")
        store.remove([4])
        _, ann, _, ordinary, tonight, after = store.history()
        assert [receipt.deferred for receipt in store.history()] == [
            *(False, True, True, False, False, False)
        ]
        assert [receipt.rows_deferred for receipt in store.history()] == [0, 2, 4, 4, 0, 0]
        assert (ann.strategy, ann.nodes_regrown, ann.forgetting) == ("in-place", 0, None)
        assert (ann.removed, ann.edges) == ([[1, 3]], "computed with")
        assert (tonight.action, tonight.request) == ("regrow", "tonight")
        assert (tonight.removed, tonight.added, tonight.edges) == ([], [], "")
        assert tonight.strategy == report.strategy
        assert tonight.nodes_regrown == report.nodes_regrown
        assert tonight.rows_regrown == report.rows_regrown
        assert tonight.before == ordinary.after
        assert tonight.previous == ordinary.hash
        assert after.before == tonight.after == store.receipt("tonight").after
        assert find_break(store.receipts()) is None
        before = store.history()
    with Store.open(path) as store:
        assert store.history() == before
        store.compact()
        assert store.history() == before
        store.verify()


def test_receipt_of_regrowing_has_the_estimate(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store)
        report = store.regrow(0.05)
        assert report.forgetting is not None
        assert store.last_receipt.forgetting == asdict(report.forgetting)
        assert store.last_receipt.rows_deferred == report.rows_deferred == len(OUT)
    with Store.open(path) as store:
        assert store.last_receipt.forgetting == asdict(report.forgetting)


def test_nothing_to_regrow_has_no_receipt(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        before = files(path)
        report = store.regrow(request="tonight")
        assert (report.strategy, report.nodes_regrown, report.rows_deferred) == ("in-place", 0, 0)
        assert len(store.history()) == 1
        assert files(path) == before
        assert str(store.pending) == "nothing to regrow"


def test_empty_deferred_changes_have_no_receipt(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([], regrow=False)
        store.update(regrow=False)
        assert len(store.history()) == 1


def test_new_class_is_not_deferred(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store)
        report = store.add(X, ["maybe", "maybe"], regrow=False)
        assert (report.strategy, report.rows_deferred) == ("refit", 0)
        receipt = store.last_receipt
        assert (receipt.strategy, receipt.deferred, receipt.rows_deferred) == ("refit", False, 0)
        assert store.regrown_by(store.receipt(1)) == receipt
        found = state(store)
    with Store.open(path) as store:
        assert state(store) == found
        store.verify()


def test_regrown_by_one_change(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store, [1, 2])
        first, second = store.history()[1:]
        assert store.regrown_by(first) is None
        store.refresh()
        store.remove([3])
        assert store.regrown_by(first) is None
        store.regrow(request="tonight")
        store.remove([5], regrow=False)
        assert store.regrown_by(first) == store.regrown_by(second) == store.receipt("tonight")
        assert store.regrown_by(store.last_receipt) is None
        store.refit(request="all again")
        assert store.regrown_by(first) == store.receipt("tonight")
        assert store.regrown_by(store.receipt(6)) == store.receipt("all again")
        assert store.refitted_since(first)


def test_regrown_by_several_changes_with_limited_work(path: Path) -> None:
    """The last of them is the one that regrew the rest."""
    features, score = make_rows(0, N_ROWS)
    labels = score > 0
    labels[OUT] = ~labels[OUT]  # so that there is much to forget
    model = GraftBoostClassifier(n_estimators=10, min_samples_leaf=5, n_jobs=1)
    with Store.create(path, model.fit(features, labels)) as store:
        _defer(store)
        first = store.receipt(1)
        for _ in range(100):
            report = store.regrow(0.1)
            if not report.rows_deferred:
                break
            assert store.regrown_by(first) is None
        parts = [receipt for receipt in store.receipts() if receipt.action == "regrow"]
        assert len(parts) > 1
        assert [receipt.rows_deferred for receipt in parts] == [
            *[len(OUT)] * (len(parts) - 1),
            0,
        ]
        assert store.regrown_by(first) == parts[-1] == store.last_receipt
        assert store.regrown_by(store.receipt(len(OUT))) == parts[-1]


def test_receipts_in_words(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store)
        booked = store.receipt(1)
        text = booked.in_words(store.refitted_since(booked), store.regrown_by(booked))
        assert re.search(r"^  done +in-place, rows booked$", text, re.MULTILINE)
        assert re.search(r"^  regrown +not yet$", text, re.MULTILINE)
        assert "forgetting" not in text
        assert "nodes regrown" not in text
        store.regrow(0.05)
        part = store.last_receipt
        assert re.search(r"^  action +regrow$", str(part), re.MULTILINE)
        assert re.search(r"^  not yet regrown +15 rows$", str(part), re.MULTILINE)
        store.remove([3])
        assert re.search(r"^  not yet regrown +15 rows$", str(store.last_receipt), re.MULTILINE)
        store.regrow()
        last = store.last_receipt
        assert "not yet" not in str(last)
        assert f"in-place, {last.nodes_regrown:,} nodes regrown" in str(last)
        text = booked.in_words(False, store.regrown_by(booked))
        assert f"{last.time}, by change {last.number}" in text
        assert "not yet" not in text


def test_estimate_in_words(path: Path) -> None:
    with Store.create(path, make_model("regressor")) as store:
        _defer(store)
        report = store.regrow(0.1)
        assert report.forgetting is not None
        line = rf"^  forgetting +{re.escape(report.forgetting.in_words())}$"
        assert re.search(line, str(store.last_receipt), re.MULTILINE)
        assert "None" not in str(store.last_receipt)


# --- parameters -----------------------------------------------------------------------------------


def test_arguments_of_regrowing_are_recorded(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.model.set_params(memory_floor=0.5)
        _defer(store)
        assert decode(last_header(path)["rule"])["regrow"] is False
        store.regrow(0.05, fidelity=0.25)
        header = last_header(path)
        assert decode(header["work"]) == 0.05
        assert decode(header["rule"]) == {
            "name": "fidelity",
            "fidelity": 0.25,
            "memory_floor": 0.5,
            "tolerance": 0.0,
            "top_candidates": 1,
            "regrow": True,
        }
        store.remove([1], regrow=False)
        store.regrow()
        assert decode(last_header(path)["work"]) == math.inf
        assert decode(last_header(path)["rule"])["fidelity"] == 0.85
        found = state(store)
    with Store.open(path) as store:
        assert state(store) == found
        assert (store.model.fidelity, store.model.memory_floor) == (0.85, 0.5)


@pytest.mark.parametrize("parameter", [{"fidelity": 0.5}, {"n_jobs": 2}, {"memory_floor": 0.3}])
def test_parameters_used_by_regrowing_are_kept(path: Path, parameter: dict[str, Any]) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store)
        store.model.set_params(**parameter)
        store.regrow()
    with Store.open(path) as store:
        [(name, value)] = parameter.items()
        assert store.model.get_params()[name] == value


# --- calls that are refused -----------------------------------------------------------------------


def assert_refused(store: Store, call: Callable[[], Any], error: Any, message: str) -> None:
    """Check that a call raises an error and changes nothing."""
    before, held, written = state(store), store.history(), files(store.path)
    with pytest.raises(error, match=message):
        call()
    assert (state(store), store.history(), files(store.path)) == (before, held, written)
    store.verify()


@pytest.fixture(params=["not loaded", "loaded"])
def pending(request: Any, path: Path) -> Any:
    """A store with deferred rows, whose estimator is loaded or not."""
    with Store.create(path, make_model()) as store:
        store.remove([7, 8], regrow=False)
    with Store.open(path) as store:
        if request.param == "loaded":
            store.model  # noqa: B018
        yield store


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("regrow", [0, None, "no", [True]], ids=repr)
def test_regrow_that_is_not_a_boolean(pending: Store, name: str, regrow: Any) -> None:
    call = lambda: CHANGES[name](pending, regrow=regrow)  # noqa: E731
    assert_refused(pending, call, TypeError, "regrow is of type .*, but True or False is expected")


@pytest.mark.parametrize("regrow", [0, None])
def test_regrow_that_is_not_a_boolean_of_no_rows(pending: Store, regrow: Any) -> None:
    for call in (pending.remove, lambda _, **how: pending.update(**how)):
        assert_refused(pending, lambda call=call: call([], regrow=regrow), TypeError, "regrow is")


@pytest.mark.parametrize("name", CHANGES)
def test_deferral_with_a_fidelity(pending: Store, name: str) -> None:
    call = lambda: CHANGES[name](pending, regrow=False, fidelity=0.5)  # noqa: E731
    assert_refused(pending, call, ValueError, "fidelity is given with regrow=False")


@pytest.mark.parametrize("work", [0, -0.5, math.nan, True, "0.05", [0.1]], ids=repr)
def test_invalid_work(pending: Store, work: Any) -> None:
    message = "work is .*, but a positive number is expected"
    assert_refused(pending, lambda: pending.regrow(work), ValueError, message)


@pytest.mark.parametrize("fidelity", [-0.1, 1.5, math.nan, "high", True], ids=repr)
def test_invalid_fidelity(pending: Store, fidelity: Any) -> None:
    message = "fidelity is .*, but a fraction is expected"
    assert_refused(pending, lambda: pending.regrow(fidelity=fidelity), ValueError, message)


def test_request_that_is_not_text(pending: Store) -> None:
    for call in (
        lambda: pending.regrow(request=7),  # type: ignore[arg-type]
        lambda: pending.remove([1], request=7, regrow=False),  # type: ignore[arg-type]
    ):
        assert_refused(pending, call, TypeError, "a request id is text")


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("rule", ["regret", "rank"])
@pytest.mark.parametrize("name", [*CHANGES, "regrow"])
def test_other_rules(path: Path, name: str, rule: str, loads: bool) -> None:
    Store.create(path, make_model(update_rule=rule)).close()
    with Store.open(path) as store:
        if loads:
            store.model  # noqa: B018
        call = store.regrow if name == "regrow" else lambda: CHANGES[name](store, regrow=False)
        message = f"applies to update_rule='fidelity', but update_rule is '{rule}'"
        assert_refused(store, call, ValueError, message)


def test_rule_that_was_set_since_the_rows_were_deferred(pending: Store) -> None:
    pending.model.set_params(update_rule="regret")
    for call in (pending.regrow, lambda: pending.remove([1], regrow=False)):
        assert_refused(pending, call, ValueError, "but update_rule is 'regret'")
    pending.model.set_params(update_rule="fidelity")
    assert pending.regrow().rows_deferred == 0


def test_reader_cannot_regrow(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store)
    with Store.open(path, read_only=True) as reader:
        assert reader.pending.rows_removed == len(OUT)
        assert n_pending(reader) == len(OUT)
        for call in (reader.regrow, lambda: reader.remove([1], regrow=False)):
            with pytest.raises(StoreError, match="read_only"):
                call()


def test_closed_store(path: Path) -> None:
    store = Store.create(path, make_model())
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.regrow()


# --- replay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["deferral", "regrowing"])
def test_change_without_its_receipt_is_made(path: Path, what: str) -> None:
    """The writer was killed between the journal and the receipt."""
    with Store.create(path, make_model()) as store:
        _defer(store)
        if what == "regrowing":
            store.regrow(0.1, request="tonight")
        found, receipt, digest = state(store), store.last_receipt, store.digest
    log = path / "receipts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            assert (state(store), store.digest) == (found, digest)
            assert store.last_receipt == receipt
            store.verify()
    assert json.loads(log.read_bytes().splitlines()[-1])["hash"] == receipt.hash


@pytest.mark.parametrize("what", ["deferral", "regrowing"])
def test_incomplete_change_is_not_made(path: Path, what: str) -> None:
    with Store.create(path, make_model()) as store:
        _defer(store)
        if what == "regrowing":
            before = state(store)
            store.regrow(0.1)
        else:
            before = state(store)
            store.remove([1], regrow=False)
    log, journal = path / "receipts.jsonl", journal_of(path)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    journal.write_bytes(journal.read_bytes()[:-5])
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            assert state(store) == before
            assert n_pending(store) == len(OUT)
            store.verify()


@pytest.mark.parametrize("what", ["deferral", "regrowing"])
def test_change_that_cannot_be_written_is_undone(
    path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is noted of deferred rows, which the digest does not cover."""

    def fail(*args: Any) -> None:
        raise OSError(5, "Input/output error")

    with Store.create(path, make_model()) as store:
        _defer(store)
        before, pending, digest = state(store), store.pending, store.digest
        with monkeypatch.context() as patch:
            patch.setattr(atomic_file, "write", fail)
            with pytest.raises(StoreError, match=r"The store is unchanged|what it held before"):
                store.regrow(0.1) if what == "regrowing" else store.remove([1], regrow=False)
        assert store.digest == digest
        assert state(store) == before
        assert store.pending == pending
        model = copy.deepcopy(store.model)
        store.regrow()
        model.regrow()
        assert state(store) == state(model)
        assert store.n_rows == N_ROWS - len(OUT)
        store.verify()
    with Store.open(path) as store:
        assert state(store) == state(model)
