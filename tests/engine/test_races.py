"""Threads that change a model, look at it, predict and copy it at the same time.

``make races`` runs this under ThreadSanitizer.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import numpy as np
import pytest

from .making import CLASSES, LOSSES, fit_forest, make_data, update_forest

N_ROUNDS = 6


@pytest.mark.parametrize("loss", LOSSES)
def test_everything_at_once(loss: str) -> None:
    data = make_data(0, loss, n_rows=3_000)
    held, coming = data.take(np.arange(2_500)), data.take(np.arange(2_500, 3_000))
    forest = fit_forest(held, n_threads=2)
    nothing = coming.take(np.arange(0))
    done = threading.Event()
    failures: list[BaseException] = []

    def change() -> None:
        for turn in range(N_ROUNDS):
            part = coming.take(np.arange(80 * turn, 80 * turn + 80))
            update_forest(forest, part, held.ids[80 * turn : 80 * turn + 80])
            forest.refresh(2) if turn % 2 else forest.refit(2)
            update_forest(forest, nothing, part.ids[:20])

    def look() -> None:
        forest.recorded(1)
        forest.leaf_ids(1)
        forest.tree(0)
        forest.splits(0)
        forest.held_codes(0)
        assert len(forest.row_ids) > 2_000

    def predict() -> None:
        assert np.isfinite(forest.raw_scores(data.X[:500], 2)).all()
        forest.apply(data.X[:500], 2)

    def duplicate() -> None:
        copy.deepcopy(forest).check_state(2)

    def repeated(do: Callable[[], None]) -> Callable[[], None]:
        def work() -> None:
            try:
                while not done.is_set():
                    do()
            except BaseException as error:
                failures.append(error)

        return work

    threads = [threading.Thread(target=repeated(do)) for do in (look, predict, predict, duplicate)]
    for thread in threads:
        thread.start()
    try:
        change()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert forest.trees_per_iteration == (CLASSES[loss] if loss == "softmax" else 1)
    forest.check_state(2)
