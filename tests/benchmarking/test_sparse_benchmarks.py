"""The measurements of sparse tables run from end to end. Speed is not tested here."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse as sp

import datasets
from benchmarks import memory
from benchmarks.__main__ import main
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.report import as_markdown
from benchmarks.results import Record, load_runs
from benchmarks.settings import Settings
from benchmarks.sparse import fit, fractions, one_hot, one_row, stream
from benchmarks.sparse.parts import PARTS, PARTS_BY_KIND
from datasets import DataNotFoundError

from .making import Prior, make_plan, make_run, publish_all

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N_COLUMNS = 40


def _write_sparse(path: Path, n_rows: int, *, split: bool) -> None:
    """Counts of words, the first of which separates the two classes."""
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.2, size=(n_rows, N_COLUMNS))
    X = sp.csr_matrix(dense.astype(np.uint8))
    arrays = {"target": (dense[:, 0] + rng.poisson(0.1, n_rows) > 0).astype(np.uint8) + 3}
    if split:
        arrays["split"] = (np.arange(n_rows) % 3 == 0).astype(np.uint8)
    parts = {"indices": X.indices, "indptr": X.indptr, "data": X.data, "shape": np.array(X.shape)}
    np.savez(path, format=np.array(b"csr"), **parts, **arrays)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small substitutes for the data sets."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in datasets.SPARSE:
        stream_rows = stream.QUICK_WINDOW + stream.QUICK_STEPS * stream.STEP + 50
        n_rows = stream_rows if name == "spam_stream" else 300
        _write_sparse(folder / f"{name}.npz", n_rows, split=name != "spam_stream")
    rng = np.random.default_rng(0)
    job = pd.Series(rng.choice(["baker", "clerk", "smith"], 300), dtype="category")
    job[5] = None
    frame = pd.DataFrame({"age": rng.integers(0, 60, 300), "job": job})
    frame["split"] = np.where(np.arange(300) < 200, "train", "test")
    frame["target"] = ((job == "smith") ^ (frame["age"] > 40)).astype(int)
    frame.to_parquet(folder / "adult.parquet")
    frame.drop(columns="split").assign(delay=0).to_parquet(folder / "flights_3m.parquet")
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit in this process, because other processes take seconds to start."""
    monkeypatch.setattr(memory, "available", lambda: False)


class TestData:
    def test_official_split_and_classes(self, data_folder: Path) -> None:
        data = datasets.load_sparse("reuters21578")
        assert data.X_train.shape == (200, N_COLUMNS)
        assert data.X_test.shape == (100, N_COLUMNS)
        assert (data.X_train.format, data.X_train.dtype) == ("csr", np.float32)
        assert set(np.unique(data.y_train)) == {0, 1}
        X, y = datasets.load_sparse_in_order("reuters21578")
        np.testing.assert_array_equal(X[::3].toarray(), data.X_test.toarray())
        np.testing.assert_array_equal(y[::3], data.y_test)

    def test_without_a_split_the_first_rows_are_the_training_rows(self, data_folder: Path) -> None:
        data = datasets.load_sparse("spam_stream")
        X, y = datasets.load_sparse_in_order("spam_stream")
        n = len(data.y_train)
        assert n == round(0.7 * len(y))
        np.testing.assert_array_equal(data.y_test, y[n:])
        np.testing.assert_array_equal(data.X_test.toarray(), X[n:].toarray())

    def test_fewer_rows_are_drawn_in_their_order(self, data_folder: Path) -> None:
        whole, few = (datasets.load_sparse("reuters21578", n) for n in (None, 20))
        assert len(few.y_train) == len(few.y_test) == 20
        all_rows = [tuple(row) for row in whole.X_train.toarray()]
        places = [all_rows.index(tuple(row)) for row in few.X_train.toarray()]
        assert places == sorted(places)

    def test_missing_files_are_named(self, data_folder: Path) -> None:
        (data_folder / "rcv1_sample.npz").unlink()
        with pytest.raises(DataNotFoundError, match=r"no rcv1_sample\.npz in .* array 'target'"):
            datasets.load_sparse("rcv1_sample")
        with pytest.raises(ValueError, match="'adult' is not one of news20_ngrams"):
            datasets.load_sparse("adult")
        with pytest.raises(ValueError, match="'letter' is not one of adult"):
            datasets.load_coded("letter")

    @pytest.mark.parametrize("name", datasets.CODED)
    def test_both_formats_have_the_same_content(self, data_folder: Path, name: str) -> None:
        data = datasets.load_coded(name)
        coded = data.one_hot.toarray()
        assert list(data.frame.columns) == ["age", "job"]
        assert (data.one_hot.format, data.one_hot.dtype) == ("csr", np.float32)
        np.testing.assert_array_equal(coded[:, 0], data.frame["age"])
        for i, job in enumerate(["baker", "clerk", "smith"], start=1):
            np.testing.assert_array_equal(coded[:, i], data.frame["job"] == job)
        assert coded[5, 1:].sum() == 0
        assert len(data.y) == 300


def test_all_parts_from_the_command_line_to_the_page(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = publish_all("sparse", PARTS_BY_KIND, tmp_path, capsys)
    assert "python -m benchmarks sparse --libraries graftboost --threads 1 --quick" in text


def test_goals_of_parts_that_were_not_measured_are_listed(tmp_path: Path) -> None:
    index = tmp_path / "performance.md"
    assert main(["report", "--output", str(tmp_path / "none"), "--page", str(index)]) == 0
    wanted = [goal.what for part in PARTS.values() for goal in part.goals(None)]
    assert all(what in index.read_text() for what in wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["sparse", "--only", "drift"], "sparse has fit, .* not 'drift'"),
        (["updates", "--only", "one-hot"], "updates has one-row, .* not 'one-hot'"),
        (["fit", "--data", "spam_stream"], "fit has adult, .* not 'spam_stream'"),
        (["sparse", "--data", "letter"], "sparse has news20_ngrams, .* not 'letter'"),
    ],
)
def test_names_of_another_command_are_refused(
    call: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(call)
    said = capsys.readouterr().err
    assert re.search(message, " ".join(said.split()))


def test_missing_file_is_named_before_anything_runs(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data_folder / "spam_stream.npz").unlink()
    call = ["sparse", "--only", "one-row,stream", "--output", str(tmp_path / "out")]
    assert main(call) == 2
    assert "spam_stream.npz" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_part_of_one_data_set(data_folder: Path, tmp_path: Path) -> None:
    call = ["sparse", "--quick", "--only", "fractions,one-hot", "--data", "reuters21578"]
    call += ["--libraries", "graftboost", "--draws", "2,1", "--output", str(tmp_path)]
    assert main(call) == 0
    (run,) = load_runs(tmp_path).values()  # one-hot uses other data sets
    assert run.kind == "sparse-fractions"
    for way in fractions.WAYS:
        record = run.find("reuters21578", OURS, way=way, share=0.001, default=True)
        assert record is not None
        assert len(record.samples["update_seconds"]) == len(record.samples["refits"]) == 2


def test_fits_are_compared_with_the_yardstick(data_folder: Path, without_processes: None) -> None:
    ours, theirs = fit.measure("reuters21578", make_plan(Prior()))
    assert (ours.case["rows"], ours.case["columns"]) == (200, N_COLUMNS)
    assert len(ours.samples["fit_seconds"]) == len(theirs.samples["fit_seconds"]) == 2
    assert ours.samples["log_loss"] < theirs.samples["log_loss"]
    ours.samples.update(fit_seconds=[1.3, 0.6], log_loss=[0.3])
    theirs.samples.update(fit_seconds=[0.5, 0.7], log_loss=[0.25])
    run = make_run(fit.PART, ours, theirs)
    verdicts = {goal.what: goal.verdict() for goal in fit.goals(run)}
    assert (
        verdicts["sparse: fit time relative to LightGBM's"]
        == "yes: 1.20 (reuters21578), on 1 of 2 data sets"
    )
    assert verdicts["sparse: fit time relative to LightGBM's, news20_ngrams"] == "not measured"
    assert verdicts["sparse: log loss above LightGBM's, at worst"].startswith("no: +20.0%")
    assert "| reuters21578 | 200 | 40 | 7 | **1.20** (0.6 s) | 0.5 s |" in as_markdown(run)
    assert "Peak memory" not in as_markdown(run)


@pytest.mark.skipif(not memory.available(), reason="needs /proc/self/clear_refs")
def test_memory_of_a_sparse_fit_and_an_update(data_folder: Path) -> None:
    data = datasets.load_sparse("reuters21578")
    settings = Settings(iterations=3, threads=1)
    (record,) = memory.measure_peaks(data, [LIBRARIES[OURS]], settings, lambda line: None)
    assert record.failure is None
    peak, process, updated = (
        record.samples[f"{what}_bytes"][0] for what in ("peak", "process", "updated")
    )
    assert peak < process <= updated
    run = make_run(fit.PART, Record("news20_ngrams", OURS, {"updated_bytes": [6.5e9]}))
    assert fit.goals(run)[-1].verdict() == "no: 6.50 GB"
    (late,) = memory.measure_peaks(data, [LIBRARIES[OURS]], settings, lambda line: None, 0.01)
    assert late.failure == "not done in 0 s"


def test_one_model_is_updated_with_all_rows(data_folder: Path) -> None:
    ours, theirs = one_row.measure("reuters21578", make_plan(Prior()))
    assert len(ours.samples["remove_seconds"]) == len(ours.samples["add_seconds"]) == 5
    ours.samples.update(remove_seconds=[0.001], add_seconds=[0.004])
    theirs.samples["fit_seconds"] = [0.4, 0.2]
    run = make_run(one_row.PART, ours, theirs)
    (goal,) = one_row.goals(run)
    assert goal.verdict() == "yes: 50x (reuters21578), on 1 of 2 data sets"
    assert "**200x** (1 ms) | **50x** (4 ms)" in as_markdown(run)


def test_the_slower_of_removing_and_adding_counts(data_folder: Path) -> None:
    *ours, theirs = fractions.measure("reuters21578", make_plan(Prior()))
    theirs.samples["fit_seconds"] = [1.0]
    for record in ours:
        record.samples["update_seconds"] = [0.1 if record.case["way"] == "remove" else 0.4]
    run = make_run(fractions.PART, *ours, theirs)
    assert [goal.measured for goal in fractions.goals(run)] == [2.5]
    removals = [record for record in ours if record.case["way"] == "remove"]
    alone = make_run(fractions.PART, *removals, theirs)
    assert [goal.measured for goal in fractions.goals(alone)] == [None]
    assert "draws that were refits" in as_markdown(run)


def _learner(library: str, errors: list[float], seconds: list[float], **case: Any) -> Record:
    what = "learn_seconds" if library == OURS else "fit_seconds"
    samples = {"error": errors, what: [9.0, *seconds], "predict_seconds": [0.1] * len(errors)}
    case.update(window=stream.WINDOW, step=stream.STEP, steps=len(errors))
    return Record(stream.DATA, library, samples, case=case)


@pytest.mark.parametrize("rule", [{"fidelity": 0.75}, {"tolerance": 1.2}])  # now and before
def test_error_up_to_each_step_is_compared_with_the_retrains(rule: dict[str, float]) -> None:
    ours = _learner(OURS, [0.0, 0.10, 0.02], [1.0, 1.0, 1.0], **rule)
    theirs = _learner(YARDSTICK, [0.02, 0.04, 0.05], [4.0, 4.0, 40.0])
    run = make_run(stream.PART, ours, theirs)
    error, faster, *tolerant = stream.goals(run)
    assert error.measured == pytest.approx(0.05 - 0.03)  # after two steps
    assert faster.measured == 4.0  # a single slow retrain does not count in our favour
    assert [goal.verdict() for goal in tolerant] == ["not measured"] * 2
    text = as_markdown(run)
    assert "+2.00 points (step 2) | +6.00 points (step 2)" in text
    assert "**4.0x**" in text
    quick = make_run(stream.PART, replace(ours, case={**ours.case, "window": 500}), theirs)
    assert {goal.verdict() for goal in stream.goals(quick)} == {"not measured"}


def test_retrains_that_stay_slow_count_in_full() -> None:
    ours = _learner(OURS, [0.0] * 4, [1.0] * 4, fidelity=0.75)
    theirs = _learner(YARDSTICK, [0.0] * 4, [1.0, 3.0, 3.0, 3.0])
    assert stream.faster(ours, theirs) == 2.5


def test_window_slides_over_the_stream(data_folder: Path) -> None:
    by_default, tolerant, untouched, theirs = stream.measure("spam_stream", make_plan(Prior()))
    assert untouched.case["untouched"]
    assert by_default.case["fidelity"] == 0.85
    assert "tolerance" not in by_default.case
    assert tolerant.case["tolerance"] == stream.TOLERANT
    for record in (by_default, theirs):
        assert len(record.samples["error"]) == stream.QUICK_STEPS
        assert len(record.samples["learn_seconds"]) == stream.QUICK_STEPS + 1
    assert sum(by_default.samples["error"]) < sum(theirs.samples["error"])
    assert "graftboost, untouched" in as_markdown(
        make_run(stream.PART, by_default, tolerant, untouched, theirs)
    )


def test_one_hot_columns_are_compared_with_categories(data_folder: Path) -> None:
    categories, coded = one_hot.measure("adult", make_plan())
    assert (categories.case["columns"], coded.case["columns"]) == (2, 4)
    assert categories.case["rows"] == coded.case["rows"] == 300
    assert len(categories.samples["fit_seconds"]) == len(coded.samples["fit_seconds"]) == 2
    assert coded.samples["log_loss"][0] == pytest.approx(categories.samples["log_loss"][0], rel=0.2)
    categories.samples["fit_seconds"], coded.samples["fit_seconds"] = [0.2, 0.1], [0.15, 0.14]
    run = make_run(one_hot.PART, categories, coded)
    (goal,) = one_hot.goals(run)
    assert goal.verdict() == "no: 1.40 (adult), on 1 of 2 data sets"
    assert "| adult | 300 | 2 | 4 | 0.1 s | **1.40** (0.14 s) |" in as_markdown(run)


def test_failures_are_reported_and_the_rest_is_measured(tmp_path: Path) -> None:
    for part in PARTS.values():
        run = make_run(part, Record(part.data[0], OURS, failure="ValueError: no such thing"))
        assert f"{part.data[0]} failed: ValueError: no such thing." in as_markdown(run)
        assert {goal.verdict() for goal in part.goals(run)} == {"not measured"}


def test_without_the_data_the_other_commands_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path))
    for name in ("_fit", "_fit_on_one_thread", "_accuracy", "_memory", "_import", "_store"):
        monkeypatch.setattr(f"benchmarks.__main__.{name}", lambda *arguments: None)
    monkeypatch.setattr("benchmarks.updates.parts.PARTS", {})
    assert main(["all", "--quick", "--output", str(tmp_path / "out")]) == 0
    assert "skipping sparse: data set 'rcv1_sample'" in capsys.readouterr().err
