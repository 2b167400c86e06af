"""Calls of a store that cannot be deferred or regrown are refused and change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftboost.store import Store, StoreError

from .deferred_changes import CHANGES, OUT, defer, n_pending
from .stores import files, make_model, state


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
        defer(store)
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
