"""Models with deferred rows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from graftboost import GraftBoostClassifier

from .wrong_labels import FEATURES, LABELS, WRONG


@pytest.fixture(scope="session")
def remembering() -> GraftBoostClassifier:
    """A model of rows of which some have wrong labels, so that there is something to forget."""
    return GraftBoostClassifier(n_estimators=20, n_jobs=1).fit(FEATURES, LABELS)


@pytest.fixture
def deferred(remembering: Any) -> Any:
    """The same model after the rows with wrong labels were removed one by one."""
    model = copy.deepcopy(remembering)
    for row in WRONG:
        model.remove(row, regrow=False)
    return model


@pytest.fixture
def learning() -> Any:
    """A model to which rows with wrong labels were added; no leaf has too few rows."""
    model = GraftBoostClassifier(n_estimators=20, n_jobs=1)
    rest = np.delete(np.arange(569), WRONG)
    model.fit(FEATURES[rest], LABELS[rest], row_ids=rest)
    for row in WRONG:
        model.add(FEATURES[[row]], LABELS[[row]], row_ids=[row], regrow=False)
    return model
