"""The process that runs one build: ``python -m benchmarks.builds.worker``.

It reads requests from standard input, one JSON list per line, ``[request, arguments]``, and writes
one reply per line: ``{"result": ...}``, or ``{"error": ...}`` if the build raised.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
from typing import Any

from benchmarks.builds.cases import CASES
from benchmarks.builds.data import load_to_time
from benchmarks.builds.digests import digests_of
from benchmarks.libraries import LIBRARIES, OURS, warm_up
from benchmarks.settings import Settings
from benchmarks.updates.timing import copy_of, timed
from datasets import AnyDataset


class Session:
    """The requests, which are its methods.

    `load` comes first, then `fit`, then `copy`; updates change the copy.
    """

    library = LIBRARIES[OURS]
    data: AnyDataset
    settings: Settings
    model: Any
    updated: Any

    def digests(self, case: str) -> list[dict[str, str]]:
        """Digests of the models of a case."""
        return digests_of(CASES[case])

    def load(self, name: str, settings: dict[str, Any]) -> list[int]:
        """Load a data set; returns the numbers of training and test rows."""
        self.model = self.updated = None  # free before the next data set is in memory
        self.data, self.settings = load_to_time(name), Settings(**settings)
        warm_up(self.library, self.data.task, self.settings)
        return [len(self.data.y_train), len(self.data.y_test)]

    def fit(self) -> float:
        """Seconds of a fit."""
        self.model = self.updated = None
        model = self.library.model(self.data.task, self.settings)
        gc.collect()
        seconds, self.model = timed(model.fit, self.data.X_train, self.data.y_train)
        return seconds

    def predict(self) -> float:
        """Seconds of predictions for the test rows."""
        seconds, _ = timed(
            self.library.predict, self.model, self.data.X_test, self.data.task, self.settings
        )
        return seconds

    def copy(self) -> None:
        """Copy the fitted model; the first updates of the copy are those with the last rows."""
        self.updated = None
        self.updated = copy_of(self.model, len(self.data.y_train) - 1)
        self.updated.add(self.data.X_test[-1:], self.data.y_test[-1:])

    def remove(self, rows: list[int]) -> float:
        """Seconds that removing these training rows from the copy takes."""
        seconds, _ = timed(self.updated.remove, rows)
        return seconds

    def add(self, rows: list[int]) -> float:
        """Seconds that adding these test rows to the copy takes."""
        X, y = self.data.X_test[rows], self.data.y_test[rows]
        seconds, _ = timed(self.updated.add, X, y)
        return seconds


def _serve() -> None:
    warnings.simplefilter("ignore")
    replies, sys.stdout = sys.stdout, sys.stderr  # what a build prints is no reply
    session = Session()
    for line in sys.stdin:
        request, arguments = json.loads(line)
        reply: dict[str, Any]
        try:
            reply = {"result": getattr(session, request)(**arguments)}
        except Exception as error:  # a build may raise anything
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    _serve()
