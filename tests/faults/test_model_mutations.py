"""An invalid model file is either used or refused: no crash, no hang, no other error."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.persistence.file_format import InvalidFileError

from .modified_stores import KINDS, N_COLUMNS, N_ROWS, SMALL, make_rows
from .mutating import cut, flipped, overwritten, resealed, with_lying_length
from .mutation_runs import check_mutations
from .scale import amount

N_MUTATIONS = int(os.environ.get("GRAFTBOOST_MUTATIONS", amount(suite=800, torture=20_000)))


def _saved(kind: str, path: Path) -> bytes:
    rows = make_rows(kind, 0, N_ROWS)
    del rows["attributes"]
    Estimator = GraftBoostRegressor if kind == "weighted regression" else GraftBoostClassifier
    model = Estimator(**SMALL).fit(**rows)
    if kind == "deferred":
        model.remove([3, 4, 5], regrow=False)
    model.save(path)
    return path.read_bytes()


def _mutated(content: bytes, seed: int) -> bytes:
    rng = random.Random(seed)
    if rng.random() < 0.8:
        return resealed(content, rng)
    return rng.choice([flipped, overwritten, cut, with_lying_length])(content, rng)


def _use(path: Path, kind: str, seed: int) -> str:
    """Use a model in every way; returns how far that was possible."""
    rows = make_rows(kind, seed, 3)
    del rows["attributes"]
    try:
        model: Any = graftboost.load(path)
        if model.n_features_in_ != N_COLUMNS:  # a valid model of other rows
            return "loaded, with other features"
        model.predict(rows["X"])
    except InvalidFileError:
        return "refused when loaded"
    # The state is checked when it is first needed, which raises another error.
    try:
        model.remove(np.random.default_rng(seed).choice(model.row_ids_, 2, replace=False))
        ids = model.add(**rows).added_ids
        str(model.pending_)
        if model.update_rule == "fidelity":
            model.remove(ids[:2], regrow=False)
            model.regrow(0.5)
            model.regrow()
        model.refresh()
        model.refit()
    except ValueError:
        return "refused when updated"
    model.check_state()
    model.save(path)
    graftboost.load(path).check_state()
    return "used"


@pytest.mark.parametrize("kind", KINDS)
def test_mutations(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model"
    content = _saved(kind, path)

    def use(seed: int) -> str:
        path.write_bytes(_mutated(content, seed))
        return _use(path, kind, seed)

    check_mutations(kind, N_MUTATIONS // len(KINDS), use)
