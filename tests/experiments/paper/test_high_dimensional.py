"""High-dimensional data: measurements of synthetic data, and the pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("matplotlib")

from benchmarks import memory
from benchmarks.libraries import LIBRARIES, OURS, Library
from benchmarks.results import Record
from benchmarks.settings import Settings
from datasets import SparseDataset
from experiments.harness.draws import SIZES, WAYS
from experiments.harness.results import Done, Results
from experiments.paper.high_dimensional import EXPERIMENT, measuring, paper_figures
from experiments.paper.high_dimensional.measuring import SETS, TRAINING, UPDATING, Plan
from experiments.paper.high_dimensional.tables import best, figures, speed_up

TINY = Plan(
    singles=2,
    draws=2,
    trainings=2,
    settings=Settings(leaves=5, iterations=6, min_rows=5, threads=1),
)


def _made(name: str, max_rows: int | None = None) -> SparseDataset:
    rng = np.random.default_rng(0)
    words = rng.poisson(0.2, size=(260, 50)).astype(np.float32)
    y = (words[:, 0] + words[:, 1] + rng.poisson(0.1, 260) > 0).astype(np.int64)
    X = csr_matrix(words)
    return SparseDataset(name, "classification", X[:200], y[:200], X[200:], y[200:])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring.datasets, "load_sparse", _made)
    monkeypatch.setattr("gc.collect", lambda: 0)  # needed only for timing, and slow


class _Peaks:
    """Replaces processes: some libraries crash or are slow, all others take a second."""

    def __init__(self, seconds: dict[str, float | None]) -> None:
        self.seconds, self.asked = seconds, []

    def __call__(
        self,
        data: SparseDataset,
        libraries: Sequence[Library],
        settings: Settings,
        say: Any,
        limit: float | None,
    ) -> list[Record]:
        records = []
        self.asked.append([library.name for library in libraries])
        for library in libraries:
            seconds = self.seconds.get(library.name, 1.0)
            if seconds is None:
                records.append(Record(data.name, library.name, failure="ended by signal 11"))
            else:
                samples = {"fit_seconds": [seconds], "process_bytes": [2e9]}
                records.append(Record(data.name, library.name, samples))
        return records


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES.values():
        monkeypatch.setattr(type(library), "available", lambda self: True)
    monkeypatch.setattr(memory, "available", lambda: True)


def _results(scale: Any, trained: dict[str, Any], updated: dict[str, Any]) -> Results:
    results = Results("high-dimensional", scale)
    for what, found in ((TRAINING, trained), (UPDATING, updated)):
        for name, values in found.items():
            stored = json.loads(json.dumps(values, allow_nan=False))
            results.add(Done({"data": name, "what": what}, stored, 0.0))
    return results


def test_measurements_and_page(made: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if not memory.available():
        pytest.skip("needs /proc/self/clear_refs")
    monkeypatch.setattr(measuring, "WHO", (OURS,))
    monkeypatch.setattr(measuring, "QUICK", {"reuters21578": TINY})
    found = {case.labels["what"]: case.measure() for case in EXPERIMENT.cases("quick")}
    trained, updated = found[TRAINING], found[UPDATING]
    assert trained["failed"] == {}
    assert len(trained["measured"][OURS]["fit_seconds"]) == TINY.trainings
    assert best(trained, OURS, "updated_bytes") >= best(trained, OURS, "process_bytes")
    for way in WAYS:
        assert list(updated[way][OURS]) == list(SIZES)
        assert updated[way]["paper"].keys() == updated[way][OURS].keys()
    results = _results("quick", {"reuters21578": trained}, {"reuters21578": updated})
    assert speed_up(results, "reuters21578", OURS, "add", "1%") > 0
    assert speed_up(results, "reuters21578", "lightgbm", "add", "1%") is None
    text = EXPERIMENT.tables(results)
    assert "| Reuters-21578* | 200 (20,242) | 60 (677,399) | 50 (47,236) |" in text
    assert text.count("| Reuters-21578* | 1% (2) |") == len(WAYS)
    assert "small samples" in EXPERIMENT.remark(results)
    assert len(EXPERIMENT.draw(results).axes) == 4


def test_libraries_that_crashed_or_were_slow_are_not_measured_again(
    made: None, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks = _Peaks({"catboost": None, "xgboost": 2 * measuring.LONG})
    monkeypatch.setattr(memory, "measure_peaks", peaks)
    trained = measuring.trainings("news20_ngrams", TINY)
    assert peaks.asked == [list(measuring.WHO), ["lightgbm", OURS]]
    results = _results("full", {"news20_ngrams": trained}, {})
    row = "| News20 n-grams* | 120 s (637 s) | 1 s (28.4 s) | failed (crashed) | **1 s** (226 s) |"
    assert row in EXPERIMENT.tables(results)
    said = EXPERIMENT.remark(results)
    assert "CatBoost on News20 n-grams*: ended by signal 11." in said
    assert "A fit takes 1 and 1 (News20 n-grams*) times LightGBM's seconds and memory" in said
    assert "5 and 64 (RCV1) and 7.9 and 51 (News20)" in said
    assert "small samples" not in said


def _updated(seconds: float) -> dict[str, Any]:
    sizes = {size: {"rows": 1, "seconds": [seconds], "refits": 0} for size in SIZES}
    return {"rows": 200, "trees": 100, **{way: {OURS: sizes} for way in WAYS}}


def test_updates_are_shown_with_the_papers_figures(
    made: None, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "measure_peaks", _Peaks({"lightgbm": 4.0}))
    trained = measuring.trainings("rcv1_sample", TINY)
    results = _results("full", {"rcv1_sample": trained}, {"rcv1_sample": _updated(2.0)})
    text = EXPERIMENT.tables(results)
    assert "| 1 row | **20 ms** (19.3 ms) | 0 of 1 | 0.5x (239x) | 2.0x (31x) |" in text
    said = EXPERIMENT.remark(results)
    assert "Adding: LightGBM's retrain takes longer" in said
    assert "2.0x for 1 row of RCV1, a sample*" in said
    assert "by a factor of 2.0x (RCV1, a sample*)" in EXPERIMENT.answer(results)
    assert "slower" not in said
    slow = _results("full", {"rcv1_sample": trained}, {"rcv1_sample": _updated(8.0)})
    assert "slower than LightGBM's retrain on RCV1, a sample* (removing 1 row, 0.5x)" in (
        EXPERIMENT.remark(slow)
    )


def test_missing_libraries_are_named(
    made: None, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "measure_peaks", _Peaks({}))
    monkeypatch.setattr(type(LIBRARIES["catboost"]), "available", lambda self: False)
    trained = measuring.trainings("rcv1_sample", TINY)
    results = _results("full", {"rcv1_sample": trained}, {})
    assert results.skipped() == ["CatBoost"]
    assert "| - (336 s) |" in EXPERIMENT.tables(results)


def test_missing_peak_memory_is_reported(made: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: False)
    results = _results("full", {"rcv1_sample": measuring.trainings("rcv1_sample", TINY)}, {})
    assert "does not report the peak memory" in results.skipped()[0]
    assert EXPERIMENT.tables(results)
    assert EXPERIMENT.remark(results)
    assert EXPERIMENT.draw(results)


def test_each_set_replaces_one_of_the_papers() -> None:
    for name, stand_in in SETS.items():
        wanted = paper_figures.SETS[stand_in.paper]
        assert wanted.n_columns > wanted.n_train
        for way in WAYS:
            for size in SIZES:
                assert figures(name, way, size).ours > 0
    for of_paper in paper_figures.UPDATES.values():
        for name, rows in of_paper.items():
            # A tree of theirs, of 100, in the time of one of ours.
            a_tree = 1e3 * paper_figures.SECONDS[name]["lightgbm"] / 100
            for row in rows:
                assert a_tree / row.ours == pytest.approx(row.lightgbm, rel=0.01)
