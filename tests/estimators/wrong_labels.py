"""Rows of which some have wrong labels, so that there is something to forget or learn."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

FEATURES, LABELS = load_breast_cancer(return_X_y=True)
WRONG = np.arange(0, 569, 40)
LABELS[WRONG] = 1 - LABELS[WRONG]


def loss(model: Any) -> float:
    """The loss of the rows with wrong labels."""
    probabilities = model.predict_proba(FEATURES[WRONG])
    return -float(np.log(probabilities[np.arange(len(WRONG)), LABELS[WRONG]]).sum())


def state(model: Any) -> bytes:
    return pickle.dumps(model._engine_model)


def assert_nothing_pending(model: Any) -> None:
    pending = model.pending_
    assert (pending.rows_removed, pending.rows_added, pending.nodes, pending.work) == (0, 0, 0, 0)
    assert pending.forgetting is None
    assert math.isnan(pending.fidelity)
    assert pending.memory_left == 0
    assert str(pending) == "nothing to regrow"
