"""How many threads a call may use."""

import os

import joblib
import pytest

from graftboost import threads
from graftboost.threads import thread_count


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cores_at_start", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(None, 8), (-1, 8), (-2, 7), (-8, 1), (-100, 1), (1, 1), (20, 20)]
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
    with pytest.raises(ValueError, match="n_jobs is 0"):
        thread_count(0)


def test_workers_share_the_cores():
    cores = thread_count(None)
    with joblib.parallel_config("loky", n_jobs=2):
        counts = joblib.Parallel()(joblib.delayed(thread_count)(None) for _ in range(2))
    assert max(counts) <= max(1, cores // 2)
