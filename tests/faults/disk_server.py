"""Runs with `failing_disk.cpp` preloaded: changes of a store during which the disk fails."""

from __future__ import annotations

import ctypes
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import graftboost
from graftboost.store import Store, StoreError, digest

from .isolation import isolated, isolated_each
from .serving import serve
from .store_changes import (
    CHANGES,
    COMPACT_EVERY,
    WANTED,
    copy_store,
    create,
    is_closed,
    left_behind,
    make_model,
    make_store,
    requests,
)
from .tally import BrokenPromiseError, promised

NEVER = 1 << 60
BATCH = 20  # trials in one process

Fault = tuple[int, bool, int, int]  # as disk_arm takes it
NO_FAULT: Fault = (NEVER, False, 0, 0)


@cache
def shim() -> ctypes.CDLL:
    """Return the library that is preloaded, ready for use."""
    library = ctypes.CDLL(None)
    library.disk_arm.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    library.disk_seen.restype = library.disk_disarm.restype = ctypes.c_long
    library.disk_name.argtypes = [ctypes.c_long]
    library.disk_name.restype = ctypes.c_char_p
    return library


@cache
def _base() -> Path:
    path = Path(tempfile.mkdtemp()) / "store"
    make_store(path)
    return path


def _attempt(fault: Fault, function: Callable[[], Any]) -> BaseException | None:
    """Call a function while the disk fails; returns the error."""
    shim().disk_arm(*fault)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of compactions that failed
            function()
    except (OSError, StoreError) as error:
        return error
    finally:
        shim().disk_disarm()
    return None


def _is_unknown(error: BaseException | None) -> bool:
    """Whether an error says that the outcome of the change is unknown.

    Such an error has a class of its own.
    """
    ours = type(error).__module__.startswith("graftboost")
    return ours and type(error) is not StoreError and isinstance(error, (StoreError, OSError))


# --- operations -----------------------------------------------------------------------------------


def _change(name: str, fault: Fault, folder: Path) -> str:
    path = copy_store(_base(), folder / "store")
    compacting = name.endswith(", then compact")
    store = Store.open(path, compact_every=3 if compacting else 100)
    before = store.digest
    error = _attempt(fault, lambda: CHANGES[name.removesuffix(", then compact")](store))
    unknown = _is_unknown(error)
    promised(is_closed(store) or not unknown, "the outcome is unknown, but the store is open")
    if not is_closed(store):
        _check_open(store, before if error else None)
    store.close()
    for read_only in (True, False):  # first a reader, which does not tidy up
        with Store.open(path, read_only=read_only) as store:
            _check_state(store, name, made=None if unknown else error is None)
    _go_on(path)
    return "unknown, and whole" if unknown else "refused, unchanged" if error else "made"


def _check_open(store: Store, unchanged: str | None) -> None:
    same = unchanged is None or store.digest == unchanged
    promised(same, "an error was raised, but the open store has changed")
    held = digest(store.model._engine_model)
    promised(held == store.digest, "the open store has another model than it says")
    store.verify()


def _check_state(store: Store, name: str, *, made: bool | None) -> None:
    found = requests(store)
    wanted = found[1:].count(WANTED)  # the first one made the store
    promised(wanted <= 1, "the change was made twice")
    promised(made is not False or not wanted, "the change was refused, but is there")
    has_receipt = not name.startswith("compact")
    promised(not made or not has_receipt or wanted == 1, "the change was made, but is lost")
    promised(found[0] == WANTED and found[2:4] == ["first", "second"], "an old change is lost")
    store.verify()


def _go_on(path: Path) -> None:
    """Change and verify the store as if nothing had happened."""
    promised(not left_behind(path), f"files are left behind: {left_behind(path)}")
    with Store.open(path, compact_every=COMPACT_EVERY) as store:
        store.remove([20])
        store.refit()
        store.remove([21])
        store.verify()
    promised(not left_behind(path), f"files are left behind later: {left_behind(path)}")


def _create(name: str, fault: Fault, folder: Path) -> str:
    path = folder / "created" / "store"
    made: list[Store] = []
    error = _attempt(fault, lambda: made.append(create(path)))
    for store in made:
        store.verify()
        store.close()
    if error is not None:
        try:
            Store.open(path).close()
        except FileNotFoundError:
            create(path).close()  # the next attempt succeeds
        else:
            promised(_is_unknown(error), "the store was refused, but is there")
    with Store.open(path) as store:
        store.verify()
        store.remove([1])
    promised(not left_behind(path), f"files are left behind: {left_behind(path)}")
    return "unknown, and whole" if _is_unknown(error) else "refused" if error else "made"


def _open(name: str, fault: Fault, folder: Path) -> str:
    """Open a store whose writer stopped in the middle of a change."""
    path = copy_store(_base(), folder / "store")
    journal = max(path.glob("journal-*"))
    with journal.open("ab") as file:
        file.write(journal.read_bytes()[:100])
    (path / ".model-000009.graft.0a1b2c3d.tmp").write_bytes(b"half of a model")
    opened: list[Store] = []
    error = _attempt(fault, lambda: opened.append(Store.open(path)))
    for store in opened:
        store.verify()
        store.close()
    with Store.open(path) as store:
        _check_state(store, name, made=None)
    _go_on(path)
    return "refused" if error else "made"


def _save(name: str, fault: Fault, folder: Path) -> str:
    """Save a model over another one."""
    path = folder / "model"
    old, new = make_model(), graftboost.GraftBoostRegressor(n_estimators=2)
    X = [[0.0], [1.0], [2.0]] * 10
    new.fit(X, [0.0, 1.0, 2.0] * 10)
    old.save(path)
    error = _attempt(fault, lambda: new.save(path))
    found = digest(graftboost.load(path)._engine_model)
    known = (digest(old._engine_model), digest(new._engine_model))
    promised(found in known, "the file has neither the old model nor the new one")
    promised(error is not None or found == known[1], "the model was saved, but is not there")
    refused = error is not None and not _is_unknown(error)
    promised(not refused or found == known[0], "the model was refused, but is there")
    graftboost.load(path).check_state()
    new.save(path)
    # A temporary file that could not be removed while the disk failed may remain.
    return "unknown, and whole" if _is_unknown(error) else "refused" if error else "made"


def _operation(name: str) -> Callable[[str, Fault, Path], str]:
    return {"create": _create, "open": _open, "save": _save}.get(name, _change)


# --- requests -------------------------------------------------------------------------------------


def _calls(name: str) -> Any:
    """Return the names of the calls that an operation makes."""

    def list_calls() -> list[str]:
        _operation(name)(name, NO_FAULT, Path(tempfile.mkdtemp()))
        return [shim().disk_name(number + 1).decode() for number in range(shim().disk_seen())]

    ending = isolated(list_calls)
    if ending.death:
        raise RuntimeError(f"with nothing failing: {ending.death}")
    return ending.value


def _tried(name: str, fault: Fault) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return True, _operation(name)(name, fault, Path(folder))
        except BrokenPromiseError as broken:
            return False, str(broken)
        except Exception as error:
            return False, f"{type(error).__name__}: {error}".replace(folder, "")


def _run(name: str, faults: list[Fault]) -> Iterator[tuple[bool, str]]:
    for ending in isolated_each(lambda fault: _tried(name, fault), faults, batch=BATCH):
        yield ending.value or (False, ending.death)


def _answer(request: dict[str, Any]) -> Any:
    if "faults" not in request:
        return _calls(request["operation"])
    return list(_run(request["operation"], request["faults"]))


if __name__ == "__main__":
    serve(_answer)
