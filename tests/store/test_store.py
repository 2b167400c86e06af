"""A store keeps its model between calls: changes, receipts, errors and attributes."""

from __future__ import annotations

import copy
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graftboost import GraftBoostClassifier
from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.persistence.pieces import Pieces
from graftboost.store import Store, StoreError, StoreLockedError, digest
from graftboost.store.receipts import as_ranges, find_break

from .stores import N_ROWS, change, files, make_model, make_rows, state


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
@pytest.mark.parametrize("compact_every", [1, 3, 100])
def test_store_and_estimator_stay_identical(path: Path, kind: str, compact_every: int) -> None:
    model = make_model(kind)
    X, _ = make_rows(77, 30)
    store = Store.create(path, model, compact_every=compact_every)
    for number in range(12):
        change(store, number)
        change(model, number)
        assert store.digest == digest(model._engine_model)
        if number % 5 == 4:
            store.close()
            store = Store.open(path, compact_every=compact_every)
        np.testing.assert_array_equal(store.predict(X), model.predict(X))
    assert state(store) == state(model)
    assert store.model._next_id == model._next_id
    np.testing.assert_array_equal(store.row_ids, model.row_ids_)
    assert store.n_rows == model.n_rows_
    assert len(store.history()) == 13
    store.verify()
    store.close()
    with Store.open(path, read_only=True) as reader:
        reader.verify()
        assert state(reader) == state(model)


def test_predictions(path: Path) -> None:
    model = make_model()
    X, _ = make_rows(1, 10)
    with Store.create(path, model) as store:
        np.testing.assert_array_equal(store.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(store.decision_function(X), model.decision_function(X))
    with (
        Store.create(path.with_name("other"), make_model("regressor")) as store,
        pytest.raises(
            AttributeError, match="contains a GraftBoostRegressor, which has no predict_proba"
        ),
    ):
        store.predict_proba(X)


def test_the_given_model_is_not_changed(path: Path) -> None:
    model = make_model()
    with Store.create(path, model) as store:
        held = store.model
        store.remove([0, 1])
        assert model.n_rows_ == N_ROWS
        assert held.n_rows_ == N_ROWS - 2
        store.compact()
        assert store.model is held
        store.remove([2])
        assert held.n_rows_ == N_ROWS - 3


def test_refresh_and_refit_are_changes(path: Path) -> None:
    model = make_model()
    with Store.create(path, model) as store:
        store.remove([1, 2, 3])
        store.refresh()
        store.refit(request="all again")
        assert [r.action for r in store.history()] == ["create", "update", "refresh", "refit"]
        rest = np.delete(np.arange(N_ROWS), [1, 2, 3])
        X, y = make_rows(0, N_ROWS)
        never_seen = copy.deepcopy(model)
        never_seen.remove([1, 2, 3])
        never_seen.refit()
        assert store.digest == digest(never_seen._engine_model)
        edges = {f: model._engine_model.bins.edges(f) for f in range(X.shape[1])}
        fitted = GraftBoostClassifier(**{**model.get_params(), "bin_edges": edges})
        fitted.fit(X[rest], np.where(y[rest] > 0, "yes", "no"), row_ids=rest)
        # Except for the storage of codes, which depends on the rows in fit.
        for t in range(fitted._engine_model.n_trees):
            one, other = fitted._engine_model.tree(t), store._state.saved.engine_model.tree(t)
            assert all((one[name] == other[name]).all() for name in one)
    with Store.open(path) as store:
        assert store.digest == digest(never_seen._engine_model)


def test_digest_identifies_models() -> None:
    model = make_model()
    X, y = make_rows(0, N_ROWS)
    order = np.random.default_rng(0).permutation(N_ROWS)
    again = GraftBoostClassifier(**model.get_params())
    again.fit(X[order], np.where(y[order] > 0, "yes", "no"), row_ids=order)
    assert digest(again._engine_model) == digest(model._engine_model)
    other = copy.deepcopy(model)
    other.remove([0])
    assert digest(other._engine_model) != digest(model._engine_model)
    again.fit(X, np.where(y > 0, "yes", "no"), row_ids=np.arange(N_ROWS) + 1)
    assert digest(again._engine_model) != digest(model._engine_model)


# --- receipts -------------------------------------------------------------------------------------


def test_receipts(path: Path) -> None:
    X, _ = make_rows(5, 3)
    with Store.create(path, make_model(), request="first") as store:
        store.remove([5, 6, 9], request="ann")
        store.add(X, ["yes", "no", "yes"], row_ids=[1000, 1001, 1002])
        store.remove([1000], request="bob")
        store.remove([1001, 7])
        created, ann, added, bob, mixed = store.history()
        assert (created.action, created.request, created.added) == ("create", "first", [[0, 200]])
        assert (ann.removed, ann.n_removed, ann.added) == ([[5, 7], [9, 10]], 3, [])
        assert ann.removes(6)
        assert not ann.removes(7)
        assert added.added == [[1000, 1003]]
        assert [r.edges for r in store.history()] == ["", "computed with", "", "computed before",
                                                      "computed with"]  # fmt: skip
        assert bob.before == added.after
        assert mixed.previous == bob.hash
        assert store.receipt("ann") == ann
        assert store.receipt(3) == bob
        assert not store.refitted_since(ann)
        store.refit()
        assert store.refitted_since(ann)
        with pytest.raises(KeyError, match="no receipt for 'carl'"):
            store.receipt("carl")
        before = store.history()
        store.compact()
        assert store.history() == before
    with Store.open(path) as store:
        assert store.history() == before
        store.verify()


def test_given_edges(path: Path) -> None:
    model = make_model(bin_edges=[[0.0, 1.0]] * 4)
    with Store.create(path, model) as store:
        store.remove([5])
        assert store.history()[-1].edges == "supplied"


def test_empty_changes_have_no_receipt(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([])
        store.update()
        assert len(store.history()) == 1


@pytest.mark.parametrize("how", ["changed", "removed", "cut", "exchanged", "gone"])
def test_broken_chain_is_detected(path: Path, how: str) -> None:
    with Store.create(path, make_model()) as store:
        for row in range(4):
            store.remove([row])
        store.compact()
        store.verify()
    receipts = path / "receipts.jsonl"
    lines = receipts.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    match how:
        case "changed":
            content = json.loads(lines[2])
            content["removed"] = [[77, 78]]
            lines[2] = (json.dumps(content) + "\n").encode()
        case "removed":
            del lines[2]
        case "cut":
            del lines[-1]
        case "exchanged":
            lines[1], lines[2] = lines[2], lines[1]
    if how == "gone":
        receipts.unlink()
    else:
        receipts.write_bytes(b"".join(lines))
    with (
        pytest.raises((StoreError, InvalidFileError), match=r"broken|missing|damaged"),
        Store.open(path) as store,
    ):
        store.verify()


def test_ranges_and_chains() -> None:
    assert as_ranges(np.array([], dtype=np.int64)) == []
    assert as_ranges(np.array([-1, -3, -2, 5])) == [[-3, 0], [5, 6]]
    assert find_break([]) is None


# --- errors ---------------------------------------------------------------------------------------


def test_errors_leave_the_store_unchanged(path: Path) -> None:
    X, y = make_rows(5, 2)
    with Store.create(path, make_model()) as store:
        store.remove([1])
        before, on_disk = store.digest, files(path)
        for call, told in [
            (lambda: store.remove([1]), "no row with id 1"),
            (lambda: store.remove(None), "row_ids is None"),
            (lambda: store.remove([0.5]), "ids are 64-bit integers"),
            (lambda: store.add(None, y), "X is None"),
            (lambda: store.add(X, [1.5, 2.5]), "."),
            (lambda: store.add(X[:, :2], ["yes", "no"]), "features"),
            (lambda: store.add(X, ["yes", "no"], row_ids=[5, 1000]), "already holds"),
            (lambda: store.add(X, ["yes", "no"], attributes={"a": [1, 2]}), "the columns"),
            (lambda: store.update(attributes={"a": [1]}), "without X"),
        ]:
            with pytest.raises((ValueError, TypeError), match=told):
                call()
        assert store.digest == before == digest(store._state.saved.engine_model)
        assert files(path) == on_disk
        store.verify()


def test_one_writer_many_readers(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        with pytest.raises(StoreLockedError, match=rf"locked by process {os.getpid()}"):
            Store.open(path)
        with Store.open(path, read_only=True) as reader:
            store.remove([1])
            assert reader.n_rows == N_ROWS
            store.compact()
            assert reader.n_rows == N_ROWS
            reader.predict(make_rows(0, 2)[0])
            with pytest.raises(StoreError, match="open for reading"):
                reader.remove([2])
            with pytest.raises(StoreError, match="open for reading"):
                reader.compact()
        with Store.open(path, read_only=True) as reader:
            assert reader.n_rows == N_ROWS - 1
    with Store.open(path) as store:
        store.remove([2])


def test_closed(path: Path) -> None:
    store = Store.create(path, make_model())
    assert "open" in repr(store)
    store.close()
    store.close()
    assert "closed" in repr(store)
    for use in (
        lambda: store.remove([1]),
        lambda: store.model,
        lambda: store.n_rows,
        store.history,
    ):
        with pytest.raises(StoreError, match="is closed"):
            use()


def test_no_store(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Store.open(path)
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Store.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError, match="not an empty directory"):
        Store.create(tmp_path / "file", make_model())
    with pytest.raises(FileExistsError, match="not an empty directory"):
        Store.create(tmp_path, make_model())
    with pytest.raises(ValueError, match="holds no rows"):
        Store.create(path, make_model(updatable=False))
    Store.create(path, make_model()).close()
    with pytest.raises(FileExistsError, match="already exists"):
        Store.create(path, make_model())


@pytest.mark.parametrize("operation", ["write", "flush"])
def test_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    store = Store.create(path, make_model())
    held = store.model
    store.remove([1])
    before, on_disk = store.digest, files(path)
    really, failed = getattr(atomic_file, operation), []

    def full(*args: Any) -> None:
        if not failed:
            failed.append(args)
            raise OSError(28, "No space left on device")
        really(*args)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file, operation, full)
        with pytest.raises(
            StoreError, match=r"No space left.*was not made. The store is unchanged"
        ):
            store.remove([2])
        assert store.digest == before == digest(store._state.saved.engine_model)
        assert 2 in store.row_ids
        assert held._engine_model is store._state.saved.engine_model
        failed.clear()
        patch.setattr(file_format, "dump", full)
        with pytest.raises(StoreError, match=r"No space left.*compact again"):
            store.compact()
    assert files(path) == on_disk
    store.remove([2])
    store.verify()
    store.close()
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS - 2


def test_full_disk_during_automatic_compaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(path, make_model(), compact_every=2)
    store.remove([1])

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(file_format, "save", full)
        with pytest.warns(RuntimeWarning, match="No change is lost"):
            store.remove([2])
    store.remove([3])
    assert not (path / "journal-000001.graft").exists()
    assert store.n_rows == N_ROWS - 3
    store.close()


def test_read_only_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.create(path, make_model()).close()
    really = os.open

    def read_only(name: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(30, "Read-only file system", str(name))
        return really(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(PermissionError, match=r"is not writable.*read_only=True"):
        Store.open(path)
    with Store.open(path, read_only=True) as store:
        store.verify()


def test_damage_is_reported(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1])
        store.remove([2])
    model, journal = path / "model-000001.graft", path / "journal-000001.graft"
    whole = files(path)

    def damage(file: Path, place: int) -> None:
        data = bytearray(whole[file.name])
        data[place] ^= 255
        file.write_bytes(data)

    damage(journal, 40)  # not the last change
    with pytest.raises(InvalidFileError, match="checksum of the header"):
        Store.open(path)
    journal.write_bytes(whole[journal.name])
    damage(model, len(whole[model.name]) - 5000)
    told = r"model-000001\.graft is damaged.*(checksum of|out of range)"
    with pytest.raises(InvalidFileError, match=told), Store.open(path) as store:
        store.verify()
    model.write_bytes(whole[model.name][:-1000])
    with pytest.raises(InvalidFileError, match="it should have"):
        Store.open(path)
    model.write_bytes(whole[model.name])
    (path / "model-000002.graft").write_bytes(b"")
    with pytest.raises(InvalidFileError, match="only 0 bytes"):
        Store.open(path)
    make_model().save(path / "model-000002.graft")
    with pytest.raises(InvalidFileError, match="does not belong to a store"):
        Store.open(path)
    (path / "model-000002.graft").unlink()
    Store.open(path).close()


def test_stores_of_other_versions(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1])
    journal, model = path / "journal-000001.graft", path / "model-000001.graft"
    whole = files(path)
    journal.write_bytes(whole[journal.name][:8] + b"\x09" + whole[journal.name][9:])
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match="version 9 of the format"):
            Store.open(path, read_only=read_only)
    assert journal.stat().st_size == len(whole[journal.name])
    journal.write_bytes(whole[journal.name])
    found = file_format.load(model)
    arrays = {name: Pieces.of(array) for name, array in found.arrays.items()}
    header = {**found.header, "store": {**found.header["store"], "format": 2}}
    file_format.save(model, header, arrays)
    with pytest.raises(
        InvalidFileError, match=r"format 2, but this graftboost supports only format 1"
    ):
        Store.open(path)


def test_version_that_computes_another_model(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1])
    from graftboost.store import state as module

    monkeypatch.setattr(module, "digest", lambda engine_model: "0" * 64)
    with pytest.raises(StoreError, match="does not give the recorded model"):
        Store.open(path)


@pytest.mark.parametrize("compact_every", [1, 100])
def test_several_threads(path: Path, compact_every: int) -> None:
    with Store.create(path, make_model(), compact_every=compact_every) as store:
        X, _ = make_rows(3, 20)
        finished: list[Any] = []
        done = threading.Event()

        def repeat(look: Any) -> None:
            while not done.is_set():
                look()
            finished.append(look)

        looks = [lambda: store.predict(X), lambda: store.n_rows]
        threads = [threading.Thread(target=repeat, args=[look]) for look in looks]
        for thread in threads:
            thread.start()
        for row in range(20):
            store.remove([row])
        done.set()
        for thread in threads:
            thread.join()
        assert store.n_rows == N_ROWS - 20
        assert len(finished) == 2


# --- attributes -----------------------------------------------------------------------------------


def test_attributes(path: Path) -> None:
    kept = pd.DataFrame(
        {
            "customer": np.arange(N_ROWS) // 2,
            "region": np.where(np.arange(N_ROWS) % 3 == 0, "north", "south"),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N_ROWS), unit="D"),
        }
    )
    X, _ = make_rows(8, 2)
    with Store.create(path, make_model(), attributes=kept) as store:
        assert store.attribute_names == ["customer", "region", "since"]
        assert store.find("customer == 7").tolist() == [14, 15]
        store.remove(store.find("customer == 7"))
        assert store.find("customer == 7").tolist() == []
        with pytest.raises(ValueError, match=r"attributes has the columns \[\]"):
            store.add(X, ["yes", "no"])
        with pytest.raises(
            ValueError, match="column 'region' contains text so far, but numbers were passed"
        ):
            store.add(X, ["yes", "no"], attributes={"customer": [7, 7], "region": [1, 2],
                                                    "since": ["", ""]})  # fmt: skip
        new = {"customer": [7, 8], "region": ["west", None], "since": ["2021", "2022"]}
        store.add(X, ["yes", "no"], attributes=new)
        assert store.find("customer == 7").tolist() == [200]
    for _ in range(2):
        with Store.open(path) as store:
            assert store.find("region == 'west' or customer == 8").tolist() == [16, 17, 200, 201]
            assert store.find("region != 'north' and row_id >= 199").tolist() == [199, 200]
            store.compact()
    with Store.create(path.with_name("plain"), make_model()) as store:
        assert store.find("row_id < 3").tolist() == [0, 1, 2]


def test_notes_are_kept(path: Path) -> None:
    with Store.create(path, make_model(), notes={"target": "y", "keep": []}) as store:
        store.remove([0])
        store.compact()
    with Store.open(path) as store:
        assert store.notes == {"target": "y", "keep": []}
        assert store.summary()["rows"] == N_ROWS - 1
