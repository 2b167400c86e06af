"""A process is forked while other threads use a model: the child's copy of it is valid."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graftboost import GraftBoostClassifier
from tests.forking import fork, wait_for

N_FORKS = 12
SECONDS = 60  # after which a child counts as hung


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fork_during_updates(n_jobs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 4))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    model = GraftBoostClassifier(n_estimators=10, n_jobs=n_jobs).fit(X, y)
    done = threading.Event()

    def change():
        for turn in range(10_000):
            if done.is_set():
                return
            ids = 10_000 + 100 * turn + np.arange(100)
            model.add(X[:100], y[:100], row_ids=ids)
            model.refit() if turn % 3 == 0 else model.remove(ids[:50])
            model.remove(ids[50:])

    def use():
        model.check_state()
        model.predict(X[:10])
        model.remove(model.row_ids_[:5])
        model.add(X[:3], y[:3])
        model.check_state()

    def predict():
        while not done.is_set():
            model.predict(X[:100])

    threads = [threading.Thread(target=change), threading.Thread(target=predict)]
    for thread in threads:
        thread.start()
    try:
        statuses = [wait_for(fork(use, SECONDS)) for _ in range(N_FORKS)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert statuses == [0] * N_FORKS
    model.check_state()
