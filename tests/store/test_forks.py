"""A process is forked while it has a store open: the child reads, and only the parent writes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftboost.store import Store, StoreError
from graftboost.store import store as store_module
from tests.forking import fork, wait_for

from .stores import N_ROWS, make_model, make_rows

N_FORKS = 12
SECONDS = 60  # after which a child counts as hung
X, _ = make_rows(1, 5)


def _check_refused(store: Store) -> None:
    changes: dict[str, Callable[[], object]] = {
        "add": lambda: store.add(X, ["yes"] * 5),
        "remove": lambda: store.remove([50]),
        "update": lambda: store.update(remove=[50]),
        "refit": store.refit,
        "refresh": store.refresh,
        "compact": store.compact,
    }
    for change in changes.values():
        with pytest.raises(StoreError, match="Open the store in this process to change it"):
            change()


def test_a_child_reads_and_does_not_write(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store", make_model())
    store.remove([1])
    before = store.digest

    def use() -> None:
        store.predict(X)
        _check_refused(store)
        store.verify()
        store.close()

    assert wait_for(fork(use, SECONDS)) == 0
    store.remove([2])  # the lock is still the parent's
    with pytest.raises(RuntimeError, match="is locked by process"):
        Store.open(tmp_path / "store")
    assert store.digest != before
    store.close()
    with Store.open(tmp_path / "store") as store:
        assert store.n_rows == N_ROWS - 2
        store.verify()


def test_forks_while_another_thread_updates(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store", make_model())
    store.predict(X)
    done = threading.Event()
    failed: list[BaseException] = []

    def change() -> None:
        try:
            number = 0
            while not done.is_set():
                number += 1
                ids = 1_000 * number + X[:, 0].argsort()
                store.add(X, ["yes"] * 5, row_ids=ids)
                store.refit() if number % 3 == 0 else store.remove(ids[:2])
        except BaseException as error:
            failed.append(error)

    def use() -> None:
        store.predict(X)
        _check_refused(store)
        store.close()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        statuses = [wait_for(fork(use, SECONDS)) for _ in range(N_FORKS)]
    finally:
        done.set()
        thread.join()
    assert failed == []
    assert statuses == [0] * N_FORKS
    store.verify()
    store.close()
    with Store.open(tmp_path / "store") as store:
        store.verify()


def test_the_lock_ends_with_the_process_that_opened_the_store(tmp_path: Path) -> None:
    """A child that outlives its parent does not prevent others from writing."""
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    reading, writing = os.pipe()

    def live_on() -> None:
        os.write(writing, str(os.getpid()).encode())
        signal.pause()

    def open_fork_and_end() -> None:
        store = Store.open(path)
        fork(live_on, SECONDS)
        assert store.n_rows == N_ROWS
        os._exit(0)  # without closing the store

    assert wait_for(fork(open_fork_and_end, SECONDS)) == 0
    grandchild = int(os.read(reading, 100))
    try:
        with Store.open(path) as store:
            store.remove([1])
    finally:
        os.kill(grandchild, signal.SIGKILL)
        os.close(reading)
        os.close(writing)


def test_a_store_can_be_used_while_it_is_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that is forked at this moment has no thread that would complete the reload."""
    load = store_module.load_state
    used = []

    def use_and_load(*args: Any) -> Any:
        used.append(store.predict(X))
        return load(*args)

    with Store.create(tmp_path / "store", make_model()) as store:
        store.remove([1])
        monkeypatch.setattr(store_module, "load_state", use_and_load)
        store.compact()
    assert len(used) == 1
