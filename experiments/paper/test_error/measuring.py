"""Test errors of trained models and of updated copies of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.measure import scores
from benchmarks.settings import Settings
from benchmarks.updates.timing import rows_of
from datasets import Dataset
from experiments.harness.contenders.ours import Ours, Paper
from experiments.harness.experiment import Values
from experiments.harness.paper_library import PAPER_LIBRARY

MOST = "1%"
WAYS = ("add", "remove")
RULES: dict[str, Mapping[str, Any]] = {kind.name: kind.parameters for kind in (Ours, Paper)}
PEERS = tuple(name for name in LIBRARIES if name != OURS)
# Ours with one parameter changed: each tree on half of the rows, or at most eleven candidates per
# feature, about a tenth of the bin boundaries that the features of the digits have.
VARIANTS: dict[str, Mapping[str, Any]] = {"half": {"subsample": 0.5}, "few": {"split_sample": 0.01}}
REFITTED = "refitted"  # whether the update was a refit


class Errors:
    """Models of one split of a data set, and their errors on its test rows."""

    def __init__(self, data: Dataset, seed: int = 0, settings: Settings | None = None) -> None:
        self.data, self.seed, self.settings = data, seed, settings or Settings()
        self._rows = np.arange(len(data.y_train))

    def trained(self, peers: Sequence[str]) -> Values:
        """Errors after training on all rows."""
        found = {OURS: self._of(self._fit(self._rows))}
        for name, parameters in VARIANTS.items():
            found[name] = self._of(self._fit(self._rows, **parameters))
        for name in peers:
            found[name] = self._peer(LIBRARIES[name], self._rows)
        return found

    def updated(self, shares: Mapping[str, float]) -> Values:
        """Errors after rows are added or removed, by way and share, with the controls.

        Rows are added to a model that was trained without them, or removed from a model that was
        trained on all. Each model is therefore the other's control: the model without the rows is
        the untouched model for additions and the retrained model for removals.
        """
        whole = self._fit(self._rows)
        of_whole = self._of(whole)
        found: Values = {way: {} for way in WAYS}
        for place, (share, part) in enumerate(shares.items()):
            drawn = self._draw(part, place)
            kept = np.delete(self._rows, drawn)
            without = self._fit(kept)
            of_without = self._of(without)
            found["add"][share] = {
                **self._changed(without, "add", drawn),
                "untouched": of_without,
                "retrained": of_whole,
            }
            found["remove"][share] = {
                **self._changed(whole, "remove", drawn),
                "untouched": of_whole,
                "retrained": of_without,
            }
            if share == MOST and LIBRARIES[YARDSTICK].available():
                found["remove"][share][YARDSTICK] = self._peer(LIBRARIES[YARDSTICK], kept)
        return found

    def _draw(self, part: float, place: int) -> NDArray[np.int64]:
        n_rows = len(self._rows)
        rng = np.random.default_rng([self.seed, place])
        return np.sort(rng.choice(n_rows, rows_of(part, n_rows), replace=False))

    def _fit(self, rows: NDArray[np.int64], **parameters: Any) -> Any:
        model = PAPER_LIBRARY.model(self.data.task, self.settings)
        model.set_params(random_state=self.seed, **parameters)
        return model.fit(self.data.X_train[rows], self.data.y_train[rows], row_ids=rows)

    def _changed(self, model: Any, way: str, drawn: NDArray[np.int64]) -> Values:
        found = {}
        for rule, parameters in RULES.items():
            copied = copy.deepcopy(model).set_params(**parameters)
            if way == "remove":
                report = copied.remove(drawn)
            else:
                X, y = self.data.X_train[drawn], self.data.y_train[drawn]
                report = copied.add(X, y, row_ids=drawn)
            found[rule] = self._of(copied)
            if rule == OURS:
                found[REFITTED] = report.strategy == "refit"
        return found

    def _of(self, model: Any) -> float:
        return self._error(LIBRARIES[OURS], model)

    def _peer(self, library: Library, rows: NDArray[np.int64]) -> float:
        with library.thread_limit(self.settings.threads):
            model = library.model(self.data.task, self.settings)
            model.fit(self.data.X_train[rows], self.data.y_train[rows])
            return self._error(library, model)

    def _error(self, library: Library, model: Any) -> float:
        predicted = library.predict(model, self.data.X_test, self.data.task, self.settings)
        found = scores(self.data, predicted)
        return found["error"] if self.data.task == "classification" else found["squared_error"]


def installed(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Installed libraries, and the titles of the others."""
    there = [name for name in names if LIBRARIES[name].available()]
    return there, [LIBRARIES[name].title for name in names if name not in there]
