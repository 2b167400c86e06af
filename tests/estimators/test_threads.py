"""How many threads a call may use."""

import os

import joblib
import numpy as np
import pytest

from graftboost import GraftBoostRegressor
from graftboost.estimators import threads
from graftboost.estimators.threads import thread_count

X = np.random.default_rng(0).normal(size=(400, 3))


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cores_at_start", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [
        (None, 8),
        (-1, 8),
        (-2, 7),
        (-8, 1),
        (-100, 1),
        (-(10**12), 1),
        (1, 1),
        (20, 20),
        (32, 32),
        (33, 32),
        (100_000, 32),
        (10**12, 32),
        (np.int8(3), 3),
    ],
)
def test_thread_count(n_jobs, expected):
    assert thread_count(n_jobs) == expected


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("limit", "expected"), [("2", 2), ("4,2", 4), ("100", 8), ("", 8), ("0", 8), ("many", 8)]
)
def test_openmp_limit(monkeypatch, limit, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert thread_count(None) == expected
    assert thread_count(-1) == expected
    assert thread_count(3) == 3


@pytest.mark.usefixtures("eight_cores")
def test_affinity(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert thread_count(None) == 2


def test_zero():
    with pytest.raises(ValueError, match=r"n_jobs is 0, .* Pass a positive number, or -1 or None"):
        thread_count(0)


@pytest.mark.parametrize("n_jobs", [1.5, 2.0, "2", [1]])
def test_values_that_are_not_integers(n_jobs):
    with pytest.raises(TypeError, match=r"n_jobs is .* Pass a positive number, or -1 or None"):
        thread_count(n_jobs)
    model = GraftBoostRegressor(n_estimators=2).fit(X, X[:, 0])
    before = model.predict(X)
    with pytest.raises(TypeError, match="n_jobs"):
        model.set_params(n_jobs=n_jobs).predict(X)
    assert np.array_equal(model.set_params(n_jobs=1).predict(X), before)


@pytest.mark.parametrize("n_jobs", [1_000, 100_000, 10**12, -(10**12)])
def test_more_threads_than_can_be_started(n_jobs):
    model = GraftBoostRegressor(n_estimators=3, n_jobs=n_jobs).fit(X, X[:, 0])
    single = GraftBoostRegressor(n_estimators=3, n_jobs=1).fit(X, X[:, 0])
    for estimator in (model, single):
        estimator.remove([5])
        estimator.add(X[:2], X[:2, 0])
        estimator.check_state()
    assert np.array_equal(model.predict(X), single.predict(X))
    assert np.array_equal(model.refit().predict(X), single.refit().predict(X))


def test_workers_share_the_cores():
    cores = thread_count(None)
    with joblib.parallel_config("loky", n_jobs=2):
        counts = joblib.Parallel()(joblib.delayed(thread_count)(None) for _ in range(2))
    assert max(counts) <= max(1, cores // 2)
