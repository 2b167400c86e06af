"""The rows that a command selects: by ids, by a file of ids, or by a condition."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graftboost.store import Store


def chosen_ids(
    store: Store, ids: list[int], ids_file: Path | None, condition: str | None
) -> NDArray[np.int64]:
    """Return the ids of the selected rows."""
    given = sum([bool(ids), ids_file is not None, condition is not None])
    if given != 1:
        raise ValueError(
            f"{given or 'None'} of IDS, --ids-file and --where {'were' if given else 'was'} given. "
            "Select the rows in exactly one of these ways."
        )
    if condition is not None:
        return store.find(condition)
    if ids_file is not None:
        text = sys.stdin.read() if str(ids_file) == "-" else ids_file.read_text()
        try:
            ids = [int(line) for line in text.split()]
        except ValueError as error:
            raise ValueError(
                f"{ids_file} contains a line that is not an integer. Write one id per line."
            ) from error
    return np.array(ids, dtype=np.int64)
