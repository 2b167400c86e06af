"""The rows that a command selects: by ids, by a file of ids, or by a condition."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graftboost.store import Store


@dataclass(frozen=True)
class ChosenRows:
    """The arguments that select rows; exactly one of them is to be given."""

    ids: list[int]
    ids_file: Path | None
    condition: str | None

    def ids_in(self, store: Store) -> NDArray[np.int64]:
        """Return the ids of the selected rows."""
        if self.condition is not None and not self.ids and self.ids_file is None:
            return store.find(self.condition)
        return self.given_ids()

    def given_ids(self) -> NDArray[np.int64]:
        """Return the ids that are given one by one, or in a file."""
        given = sum([bool(self.ids), self.ids_file is not None, self.condition is not None])
        if given != 1:
            raise ValueError(
                f"{given or 'None'} of IDS, --ids-file and --where {'were' if given else 'was'} "
                "given. Select the rows in exactly one of these ways."
            )
        ids = self.ids
        if self.ids_file is not None:
            text = sys.stdin.read() if str(self.ids_file) == "-" else self.ids_file.read_text()
            try:
                ids = [int(line) for line in text.split()]
            except ValueError as error:
                raise ValueError(
                    f"{self.ids_file} contains a line that is not an integer. Write one id per "
                    "line."
                ) from error
        return np.array(ids, dtype=np.int64)
