"""Threads that change, read and copy a model and predict with it at the same time.

``make sanitize-threads`` runs this under ThreadSanitizer.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import numpy as np
import pytest

from .making import CLASSES, LOSSES, fit_engine_model, make_data, update_engine_model

N_ROUNDS = 6


@pytest.mark.parametrize("loss", LOSSES)
def test_everything_at_once(loss: str) -> None:
    data = make_data(0, loss, n_rows=3_000)
    held, coming = data.take(np.arange(2_500)), data.take(np.arange(2_500, 3_000))
    engine_model = fit_engine_model(held, n_threads=2)
    nothing = coming.take(np.arange(0))
    done = threading.Event()
    failures: list[BaseException] = []

    def change() -> None:
        for turn in range(N_ROUNDS):
            part = coming.take(np.arange(80 * turn, 80 * turn + 80))
            update_engine_model(engine_model, part, held.ids[80 * turn : 80 * turn + 80])
            engine_model.refresh(2) if turn % 2 else engine_model.refit(2)
            update_engine_model(engine_model, nothing, part.ids[:20])

    def look() -> None:
        engine_model.recorded(1)
        engine_model.leaf_ids(1)
        engine_model.tree(0)
        engine_model.splits(0)
        engine_model.held_codes(0)
        assert len(engine_model.row_ids) > 2_000

    def predict() -> None:
        assert np.isfinite(engine_model.raw_scores(data.X[:500], 2)).all()
        engine_model.apply(data.X[:500], 2)

    def duplicate() -> None:
        copy.deepcopy(engine_model).check_state(2)

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
    assert engine_model.trees_per_iteration == (CLASSES[loss] if loss == "softmax" else 1)
    engine_model.check_state(2)
