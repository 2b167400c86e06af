"""Several callers, processes and interruptions."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from .making import fit_engine_model, make_data, trees


def fit_in_child(queue: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    queue.put(trees(fit_engine_model(make_data(0, n_rows=20_000), n_threads=2)))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    here = trees(fit_engine_model(make_data(0, n_rows=20_000), n_threads=2))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fit_in_child, args=(queue,))
    child.start()
    there = queue.get(timeout=60)
    child.join(timeout=60)
    assert there == here


def test_many_fits_at_once() -> None:
    data = make_data(0, "softmax", n_rows=5_000)
    alone = trees(fit_engine_model(data, n_threads=1))
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(fit_engine_model, data, n_threads=2) for _ in range(8)]
        assert all(trees(fit.result()) == alone for fit in fits)


def test_predictions_during_a_fit() -> None:
    data = make_data(0, n_rows=5_000)
    engine_model = fit_engine_model(data)
    expected = engine_model.raw_scores(data.X, n_threads=1)
    done = threading.Event()

    def fit() -> None:
        fit_engine_model(data, n_estimators=100, n_threads=2)
        done.set()

    worker = threading.Thread(target=fit)
    worker.start()
    while not done.is_set():
        assert (engine_model.raw_scores(data.X, n_threads=2) == expected).all()
    worker.join()


def test_ctrl_c_ends_a_fit() -> None:
    data = make_data(0, n_rows=5_000)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    start = time.monotonic()
    # A process that a shell started in the background ignores the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            fit_engine_model(data, n_estimators=10_000_000, max_leaf_nodes=2, updatable=False)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert time.monotonic() - start < 60
