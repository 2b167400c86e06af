"""Remove or add rows drawn at random: what an update costs and what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import Library
from benchmarks.measure import log_loss
from benchmarks.results import Record
from benchmarks.settings import Settings
from benchmarks.updates.forgetting import add_estimate
from benchmarks.updates.timing import copy_of, timed
from datasets import Dataset
from experiments.harness.contenders.ours import Ours, Paper
from experiments.harness.paper_library import PAPER_LIBRARY

Way = Literal["remove", "add"]
WAYS: tuple[Way, ...] = get_args(Way)

# The paper's sizes of D', the removed or added rows, as fractions of all rows.
ONE_ROW = "1 row"
SIZES = {ONE_ROW: 0.0, "0.1%": 0.001, "0.5%": 0.005, "1%": 0.01}

Rule = Mapping[str, Any]  # parameters of the estimator that select the nodes to regrow
RULES: dict[str, Rule] = {kind.name: kind.parameters for kind in (Ours, Paper)}
TITLES = {kind.name: kind.title for kind in (Ours, Paper)}


class Draws:
    """Updates with rows of one data set, under several rules, with two controls.

    Rows are removed from a copy of a model that was trained on all rows, or added to one that was
    trained without them. Each rule updates its own copy with the same rows. The controls are the
    copy before its update, and the updated copy after `refit`, which trains all trees on the same
    rows with the same bins.
    """

    def __init__(
        self,
        data: Dataset,
        settings: Settings | None = None,
        rules: Mapping[str, Rule] = RULES,
        library: Library = PAPER_LIBRARY,
        **parameters: Any,
    ) -> None:
        self.data, self.rules, self._library = data, rules, library
        self._settings, self._parameters = settings or Settings(), parameters
        self._spare = len(data.y_train) - 1  # removed from every copy before it is measured

    @cached_property
    def whole(self) -> Any:
        """The model of all rows."""
        return self.fit(np.arange(len(self.data.y_train)))

    def fit(self, rows: NDArray[np.int64], **parameters: Any) -> Any:
        """A model trained on some rows, whose ids are their positions."""
        model = self._library.model("classification", self._settings)
        model.set_params(**self._parameters, **parameters)
        return model.fit(self.data.X_train[rows], self.data.y_train[rows], row_ids=rows)

    def draw(self, n_rows: int, seed: int) -> NDArray[np.int64]:
        """Rows of the draw with this seed."""
        return np.random.default_rng(seed).choice(self._spare, n_rows, replace=False)

    def without(self, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        """All other rows."""
        return np.delete(np.arange(len(self.data.y_train)), drawn)

    def measure(self, way: Way, n_rows: int, n_draws: int, **case: str | float) -> list[Record]:
        """Update the model with several draws; returns a record for each rule."""
        records = {
            name: Record(self.data.name, name, case={"way": way, "rows": n_rows, **case})
            for name in self.rules
        }
        for seed in range(n_draws):
            self._one_draw(way, self.draw(n_rows, seed), records)
        return list(records.values())

    def _one_draw(self, way: Way, drawn: NDArray[np.int64], records: dict[str, Record]) -> None:
        model = self.whole if way == "remove" else self.fit(self.without(drawn))
        predictions = {}
        for name, rule in self.rules.items():
            updated = copy_of(model, self._spare, **rule)
            predictions[name] = self._update(way, drawn, updated, records[name])
        seconds, refitted = timed(updated.refit)
        loss, labels = self._loss(refitted, drawn), refitted.predict(self.data.X_test)
        for name, record in records.items():
            before, after = predictions[name]
            record.add("refit_seconds", seconds)
            record.add("loss_refitted", loss)
            record.add("error_refitted", self._error(labels))
            # The paper's phi: 1 - (C2W + W2C + W2W) is the share of equal predictions.
            record.add("alike_untouched", float(np.mean(before == labels)))
            record.add("alike_updated", float(np.mean(after == labels)))

    def _update(
        self, way: Way, drawn: NDArray[np.int64], model: Any, record: Record
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Update a model; returns its predictions for the test rows before and after."""
        X, y = self.data.X_train[drawn], self.data.y_train[drawn]
        before = model.predict(self.data.X_test)
        record.add("loss_before", self._loss(model, drawn))
        record.add("error_untouched", self._error(before))
        if way == "remove":
            seconds, report = timed(model.remove, drawn)
        else:
            seconds, report = timed(lambda: model.add(X, y, row_ids=drawn))
        after = model.predict(self.data.X_test)
        record.add("update_seconds", seconds)
        record.add("loss_after", self._loss(model, drawn))
        record.add("error_updated", self._error(after))
        refitted = report.strategy == "refit"
        visits = model.n_rows_ * model.apply(X[:1]).shape[1]
        record.add("refits", refitted)
        record.add("nodes_regrown", report.nodes_regrown)
        record.add("rows_regrown", 1.0 if refitted else report.rows_regrown / visits)
        add_estimate(record, report, len(drawn))
        return before, after

    def _error(self, labels: NDArray[np.int64]) -> float:
        return float(np.mean(labels != self.data.y_test))

    def _loss(self, model: Any, drawn: NDArray[np.int64]) -> float:
        X, y = self.data.X_train[drawn], self.data.y_train[drawn]
        return log_loss(model.predict_proba(X), y)
