"""Row ids: validation, and selection of rows to remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.input.wiping import Copies

if TYPE_CHECKING:
    from graftboost._engine import EngineModel

NO_IDS = np.empty(0, dtype=np.int64)
LARGEST_ID = np.iinfo(np.int64).max


def check_row_ids(
    row_ids: Any,
    n_rows: int,
    or_else: str = ", or omit row_ids to number the rows",
    argument: str = "row_ids",
) -> NDArray[np.int64] | None:
    """Return the row ids, or None if rows are to be numbered."""
    if row_ids is None:
        return None
    ids = np.asarray(row_ids)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise ValueError(
            f"{argument} has shape {ids.shape}, but must have one id per row. "
            f"Pass a one-dimensional array{or_else}."
        )
    check_length(ids, n_rows, argument)
    if ids.dtype.kind not in "iu":
        raise ValueError(
            f"{argument} has dtype {ids.dtype}, but ids are 64-bit integers. Convert them{or_else}."
        )
    if ids.dtype.kind == "u" and ids.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"{argument} contains {ids.max()}, which is too large: ids are signed 64-bit integers. "
            f"Pass smaller ids{or_else}."
        )
    ids = np.ascontiguousarray(ids, dtype=np.int64)
    if not (ids[1:] > ids[:-1]).all():
        _check_unique(ids, or_else, argument)
    return ids


def _check_unique(ids: NDArray[np.int64], or_else: str, argument: str) -> None:
    with Copies() as copies:
        in_order = copies.add(np.sort(ids))
        twice = np.flatnonzero(in_order[1:] == in_order[:-1])
        if len(twice):
            raise ValueError(
                f"{argument} contains {in_order[twice[0]]} more than once, but ids must be unique. "
                f"Remove duplicates{or_else}."
            )


def check_length(values: NDArray[Any], n_rows: int, argument: str) -> None:
    """Raise unless there is one value for each row."""
    if len(values) != n_rows:
        table = "X_val" if argument.endswith("_val") else "X"
        raise ValueError(
            f"{argument} has {len(values)} values, but {table} has {n_rows} rows. "
            "Pass one value per row."
        )


def ids_to_remove(
    engine_model: EngineModel, remove: ArrayLike | slice, argument: str
) -> NDArray[np.int64]:
    """Return the ids of rows to remove, given as ids, a mask over `row_ids_`, or a slice of ids.

    Error messages call them `argument`.
    """
    with Copies() as copies:
        return _ids_to_remove(engine_model, remove, argument, copies)


def _ids_to_remove(
    engine_model: EngineModel, remove: ArrayLike | slice, argument: str, copies: Copies
) -> NDArray[np.int64]:
    # `engine_model.row_ids` makes a copy each time, so it is only used where needed.
    if isinstance(remove, slice):
        if remove.step not in (None, 1):
            raise ValueError(
                f"{argument} is a slice with step {remove.step}, but a slice of ids selects all "
                "ids from start to stop. Omit the step, or pass the ids."
            )
        for end in (remove.start, remove.stop):
            if not isinstance(end, int | np.integer | None):
                raise ValueError(
                    f"{argument} is a slice with the bound {end!r}, but ids are integers. "
                    "Pass integers or None as bounds."
                )
        held = copies.add(engine_model.row_ids)
        chosen = np.ones(len(held), dtype=bool)
        if remove.start is not None:
            chosen &= held >= remove.start
        if remove.stop is not None:
            chosen &= held < remove.stop
        found: NDArray[np.int64] = held[chosen]
        found.sort()
        return found
    ids = np.atleast_1d(np.asarray(remove))
    if ids.dtype == bool:
        held = copies.add(engine_model.row_ids)
        if ids.shape != held.shape:
            raise ValueError(
                f"{argument} is a mask of shape {ids.shape}, but the model holds {len(held)} "
                "rows. Pass one boolean for each entry of row_ids_."
            )
        chosen_ids: NDArray[np.int64] = held[np.flatnonzero(ids)]
        return chosen_ids
    if not ids.size:
        return NO_IDS
    checked = check_row_ids(ids, len(ids), or_else="", argument=argument)
    assert checked is not None
    return checked
