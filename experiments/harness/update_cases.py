"""Cases that update models with rows drawn at random, and the models before and after."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.harness.draws import WAYS, Draws, Rule, Way
from experiments.harness.experiment import Case, Values


def each_way_and_size(
    data: Mapping[str, tuple[int | None, int]],
    sizes: Iterable[str],
    measure: Callable[[str, int | None, Way, str, int], Values],
) -> Iterator[Case]:
    """One case for each data set (with its maximum rows and its draws), way and size."""
    for name, (max_rows, n_draws) in data.items():
        for way in WAYS:
            for size in sizes:
                labels = {"data": name, "way": way, "size": size}
                yield Case(labels, partial(measure, name, max_rows, way, size, n_draws))


def before_and_after(
    draws: Draws, way: Way, drawn: NDArray[np.int64], rules: dict[str, Rule]
) -> tuple[Any, dict[str, Any]]:
    """The model before the update, and a copy of it after the update under each rule."""
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
