"""Write the files of a new store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftboost.input.row_ids import NO_IDS
from graftboost.persistence import atomic_file
from graftboost.persistence.json_values import read_json
from graftboost.store.attributes import Attributes
from graftboost.store.digest import digest
from graftboost.store.receipt_log import NAME, ReceiptLog
from graftboost.store.receipts import FIRST, Receipt, as_ranges, now, request_id
from graftboost.store.state import State

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

# What an interrupted `Store.create` may leave in its directory.
LEFT_OVER = re.compile(r"lock|receipts\.jsonl|\..*\.tmp")


def check_free(path: Path) -> None:
    """Raise unless a directory is missing, empty, or left over from an interrupted creation."""
    if not path.exists():
        return
    if path.is_dir() and all(LEFT_OVER.fullmatch(file.name) for file in path.iterdir()):
        return
    raise FileExistsError(
        f"{path} already exists and is not an empty directory. If it is a store, open it with "
        "Store.open; otherwise choose another path."
    )


def first_state(
    path: Path,
    model: GraftBoostClassifier | GraftBoostRegressor,
    attributes: Mapping[str, Any] | None,
    notes: Mapping[str, Any] | None,
    request: str | None,
) -> tuple[State, Receipt]:
    """Return the state and the first receipt of a store for a model; nothing is written yet."""
    model._read_update_parameters()  # invalid ones could not be read again
    saved = model._saved()
    ids = saved.engine_model.row_ids
    kept = Attributes([] if attributes is None else [str(name) for name in attributes])
    if attributes is not None:
        kept.add(ids, kept.check(attributes, len(ids)))
    receipt = Receipt(
        number=0,
        request=request_id(request),
        time=now(),
        action="create",
        removed=[],
        added=as_ranges(ids),
        before="",
        after=digest(saved.engine_model),
        strategy="refit",
        nodes_regrown=0,
        rows_regrown=0,
        forgetting=None,
        deferred=False,
        rows_deferred=saved.engine_model.rows_deferred,
        edges="",
        previous=FIRST,
    ).sealed()
    known = _as_stored(notes or {})
    log = ReceiptLog(path / NAME, 0, len(receipt.to_line()))
    state = State(path, 0, saved, kept, NO_IDS, known, 0, receipt.hash, receipt.after, log)
    return state, receipt


def _as_stored(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes as they are read from the file later."""
    try:
        return dict(read_json(json.dumps(notes, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            "notes cannot be stored as JSON. Use text, finite numbers, booleans, None, and lists "
            "and mappings of these."
        ) from error


def write_files(state: State, receipt: Receipt) -> None:
    """Write the first receipt and then the model: a directory without a model is not a store."""
    with atomic_file.replacing(state.path / NAME, atomic_file.PRIVATE) as file:
        file.write(receipt.to_line())
    state.write(1, atomic_file.PRIVATE)
    atomic_file.flush_directory(state.path.parent)
