"""Models before and after an update with rows drawn at random."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.draws import Draws, Rule, Way


def before_and_after(
    draws: Draws, way: Way, drawn: NDArray[np.int64], rules: dict[str, Rule]
) -> tuple[Any, dict[str, Any]]:
    """The model before the rows go or come, and a copy of it after, under each rule."""
    before = draws.whole if way == "remove" else draws.fit(draws.without(drawn))
    after = {}
    for name, rule in rules.items():
        model = copy.deepcopy(before).set_params(**rule)
        if way == "remove":
            model.remove(drawn)
        else:
            model.add(draws.data.X_train[drawn], draws.data.y_train[drawn], row_ids=drawn)
        after[name] = model
    return before, after
