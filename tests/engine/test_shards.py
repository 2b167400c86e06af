"""A model over several shards equals that over one shard, bit for bit, after any updates.

``GRAFTBOOST_SHARDS=500 make test ARGS="-k shards"`` tries 500 sequences.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graftboost._engine import EngineModel

from . import sparse_tables
from .making import CLASSES, Data, counted, fit_bins, fit_engine_model, make_data

N_SEQUENCES = int(os.environ.get("GRAFTBOOST_SHARDS", "36"))
SHARDS = (1, 2, 3, 7)
PER_ROW = ("row_ids", "row_target", "row_raw_target", "row_weight", "row_raw_weight")
PER_TREE_AND_ROW = ("tree_leaf_ids", "tree_recorded")
# The positions of the entries of rows depend on the order of rows.
OF_ENTRIES = ("row_sparse_begin", "row_sparse_count", "row_rare_count", "row_sparse_entries")


def _saved(model: EngineModel) -> dict[str, Any]:
    """All arrays of a saved model, with its rows in the order of their ids."""
    arrays = {
        name: np.concatenate([*map(np.asarray, pieces)]) if len(pieces) else np.zeros(0)
        for name, _, pieces in model.arrays(True, False)
    }
    order = np.argsort(arrays["row_ids"])
    n_rows = len(order)
    for name in PER_ROW:
        if name in arrays:
            arrays[name] = arrays[name][order]
    for name in PER_TREE_AND_ROW:
        arrays[name] = arrays[name].reshape(-1, n_rows)[:, order]
    arrays["row_cells"] = arrays["row_cells"].reshape(n_rows, -1)[order]
    begin, columns, codes, _ = model.held_rows(np.sort(model.row_ids))
    held = {"begin": begin, "columns": columns, "codes": codes}
    if not len(arrays.get("row_columns", ())):
        arrays.pop("row_columns", None)  # an empty array is as good as none
    found = {name: a for name, a in (arrays | held).items() if name not in OF_ENTRIES}
    return found | {"losses": model.validation_losses, "importances": model.gain_importances()}


def _described(model: EngineModel) -> Any:
    """All properties of a model, as bytes, so that NaN equals NaN."""
    of_trees = [
        (f"{t} {name}", values)
        for t in range(model.n_trees)
        for name, values in (model.tree(t) | model.splits(t)).items()
    ]
    arrays = {**_saved(model), **dict(of_trees)}
    summary = model.summary(True, False)
    del summary["n_entries"]  # includes the gaps left by removed rows
    return summary, {name: a.tobytes() for name, a in arrays.items()}


class _Sequence:
    """Models over different numbers of shards, which all get the same updates."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        loss = rng.choice(list(CLASSES))
        self.n_classes = CLASSES[loss]
        self.n_rows = rng.choice([8, 120, 500])
        leaf = rng.choice([2, 5, 12])
        if rng.random() < 0.5:
            weighted, options = rng.random() < 0.4, {"categories": rng.random() < 0.4}
            self.data = make_data(
                seed, loss, n_rows=2 * self.n_rows, weighted=weighted, missing=True, **options
            )
            self.table: Callable[[Data], Data] = lambda data: data
        else:
            self.data = sparse_tables.make_data(
                seed, loss, n_rows=2 * self.n_rows, n_columns=rng.choice([20, 120]), missing=True
            )
            self.table = rng.choice([sparse_tables.sparse, lambda data: data])
        held = self.data.take(np.arange(self.n_rows))
        training: dict[str, Any] = {
            "min_samples_leaf": leaf,
            "subsample": rng.choice([1.0, 1.0, 0.6]),
            "max_leaf_nodes": rng.choice([4, 9, 16]),
            "histogram_memory": rng.choice([2**60, 2**60, 20_000, 0]),
            "n_threads": rng.choice([1, 2]),
        }
        if rng.random() < 0.3:
            later = self.table(self.data.take(np.arange(self.n_rows, self.n_rows + 8)))
            training |= {"X_val": later.X, "y_val": later.y, "n_iter_no_change": 1}
        bins = fit_bins(self.table(held), rare_below=leaf)
        self.models = {
            n: fit_engine_model(self.table(held), bins, n_shards=n, **training) for n in SHARDS
        }
        self.next_row = self.n_rows

    def check(self) -> None:
        expected = _described(self.models[1])
        for n_shards, model in self.models.items():
            assert _described(model) == expected, n_shards
            model.check_state(n_threads=1)

    def step(self) -> None:
        what = self.rng.choice(
            ["add", "remove", "update", "update", "regrow", "refresh", "refit", "grow"]
        )
        if what in ("refresh", "refit"):
            for model in self.models.values():
                getattr(model, what)(1)
            return
        if what == "regrow":
            work = self.rng.choice([0.02, 0.2, np.inf])
            found = {
                (*counted(counts), counts.work, counts.rows_deferred)
                for counts in (
                    model.regrow(work, 0.85, 0.001, self.rng.choice([1, 2]))
                    for model in self.models.values()
                )
            }
            assert len(found) == 1, found
            return
        removed = np.zeros(0, np.int64)
        if what in ("remove", "update"):
            ids = np.sort(self.models[1].row_ids)
            n_removed = min(self.rng.choice([1, 3, self.n_rows // 25 + 1]), len(ids) - 1)
            removed = np.array(self.rng.sample(ids.tolist(), n_removed), np.int64)
        added: tuple[Any, ...] = (None,) * 4
        relabel = np.arange(self.n_classes)
        if what != "remove":
            n_added = self.rng.choice([1, 4, self.n_rows // 25 + 1])
            rows = np.arange(self.next_row, self.next_row + n_added) % len(self.data.ids)
            drawn = self.data.take(rows)
            ids = 1_000_000 + np.arange(self.next_row, self.next_row + n_added)
            self.next_row += n_added
            added = (self.table(drawn).X, drawn.y, drawn.weight, ids)
            if what == "grow" and self.n_classes > 1:
                relabel = np.arange(self.n_classes) + 1  # a class that is sorted before all others
                self.n_classes += 1
                added[1][:] = 0
                self.data.y[:] = self.data.y + 1
        rule = self.rng.choice(
            [
                *(("regret", t, 2, 0.0, 0.0, True) for t in (0.0, 0.3, 1.2, np.inf)),
                *(("fidelity", 0.0, 2, target, 0.0, True) for target in (0.0, 0.5, 0.85, 1.0)),
                ("fidelity", 0.0, 2, 0.85, 0.02, True),
                *(("fidelity", 0.0, 2, 0.85, 0.02, False),) * 3,
                ("rank", 0.1, 2, 0.0, 0.0, True),
            ]
        )
        n_threads = self.rng.choice([1, 2])
        found = {
            (*counted(counts), counts.work)
            for counts in (
                model.update(*added, removed, relabel, self.n_classes, *rule, n_threads)
                for model in self.models.values()
            )
        }
        assert len(found) == 1, found


@pytest.mark.parametrize("seed", range(N_SEQUENCES))
def test_models_do_not_depend_on_shards(seed: int) -> None:
    sequence = _Sequence(seed)
    sequence.check()
    for _ in range(5):
        sequence.step()
        sequence.check()


def test_a_model_needs_a_shard() -> None:
    with pytest.raises(ValueError, match="n_shards"):
        fit_engine_model(make_data(0), n_shards=0)
