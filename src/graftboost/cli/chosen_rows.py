"""Which rows a command names: by id, by a file of ids, or by a condition."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graftboost.store import Store


def chosen_ids(
    store: Store, ids: list[int], ids_file: Path | None, condition: str | None
) -> NDArray[np.int64]:
    """Return the ids of the rows that a command names, in whichever way."""
    given = sum([bool(ids), ids_file is not None, condition is not None])
    if given != 1:
        raise ValueError(
            "Name the rows in one way: by their ids, by --ids-file, or by --where. "
            f"{given or 'None'} of these {'were' if given != 1 else 'was'} given."
        )
    if condition is not None:
        return store.find(condition)
    if ids_file is not None:
        text = sys.stdin.read() if str(ids_file) == "-" else ids_file.read_text()
        try:
            ids = [int(line) for line in text.split()]
        except ValueError as error:
            raise ValueError(
                f"{ids_file} is to hold whole numbers, one a line: {error}."
            ) from error
    return np.array(ids, dtype=np.int64)
