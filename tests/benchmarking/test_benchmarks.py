"""The benchmark tool runs from end to end. Speed is not tested here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datasets
from benchmarks import __main__ as command_line
from benchmarks import arguments, memory, results
from benchmarks.__main__ import main
from benchmarks.goals import geometric_mean, goals, summary
from benchmarks.libraries import LIBRARIES, Library
from benchmarks.measure import measure, scores
from benchmarks.pages import PAGES, write_pages
from benchmarks.report import as_markdown
from benchmarks.results import Record, Run, load_runs, new_run
from benchmarks.settings import Settings
from datasets import DataNotFoundError, Dataset, Task

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tiny substitutes for three data sets."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    n = 300
    age = rng.normal(size=n)
    age[:5] = np.nan
    adult = pd.DataFrame(
        {
            "age": age,
            "job": pd.Categorical(rng.choice(["baker", "clerk", "smith"], n)),
            "split": np.where(np.arange(n) < 200, "train", "test"),
            "target": rng.integers(0, 2, n),
        }
    )
    adult.loc[7, "job"] = None
    adult.to_parquet(folder / "adult.parquet")
    flights = pd.DataFrame(
        {"distance": age, "delay": rng.normal(size=n), "target": rng.integers(0, 2, n)}
    )
    flights.to_parquet(folder / "flights_3m.parquet")
    pd.DataFrame({"length": age, "target": rng.normal(size=n)}).to_parquet(
        folder / "abalone.parquet"
    )
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(folder))
    return folder


def test_official_split_codes_and_missing_values(data_folder: Path) -> None:
    data = datasets.load("adult")
    assert data.X_train.shape == (200, 2)
    assert data.X_test.shape == (100, 2)
    assert data.X_train.dtype == np.float32
    assert np.isnan(data.X_train[:5, 0]).all()
    assert np.isnan(data.X_train[7, 1])
    assert set(np.unique(data.X_test[:, 1])) == {0.0, 1.0, 2.0}


def test_leaking_column_is_dropped_and_half_of_the_rows_are_test_rows(data_folder: Path) -> None:
    data = datasets.load("flights_3m")
    assert data.X_train.shape == data.X_test.shape == (150, 1)
    np.testing.assert_array_equal(data.X_train, datasets.load("flights_3m").X_train)


def test_no_folder_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataNotFoundError, match="GRAFTBOOST_DATA"):
        datasets.load("adult")
    assert main(["fit", "--data", "adult", "--libraries", "sklearn"]) == 2
    assert "Parquet" in capsys.readouterr().err


def test_missing_file_is_named_before_anything_runs(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    (data_folder / "flights_3m.parquet").unlink()  # which is not on OpenML either
    call = ["fit", "--data", "adult,flights_3m", "--libraries", "sklearn", "--output", str(output)]
    assert main(call) == 2
    assert "flights_3m.parquet" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("commits", "again"),
    [(("abc", "abc"), ["flights_3m"]), (("abc", "abd"), ["adult", "flights_3m"])],
)
def test_interrupted_run_is_resumed_on_the_same_commit(
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: tuple[str, str],
    again: list[str],
) -> None:
    measured: list[str] = []

    def measure_some(data: Dataset, *_: Any) -> list[Record]:
        if data.name == "flights_3m" and len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(data.name)
        return [Record(data.name, "sklearn", {"fit_seconds": [1.0]})]

    monkeypatch.setattr(command_line, "measure", measure_some)
    call = ["fit", "--data", "adult,flights_3m", "--libraries", "sklearn", "--repeats", "1"]
    call += ["--output", str(tmp_path / "out")]
    monkeypatch.setattr(results, "this_commit", lambda: commits[0])
    with pytest.raises(KeyboardInterrupt):
        main(call)
    monkeypatch.setattr(results, "this_commit", lambda: commits[1])
    measured.append("interrupted")
    assert main([*call, "--resume"]) == 0
    assert measured == ["adult", "interrupted", *again]
    (run,) = load_runs(tmp_path / "out").values()
    assert (run.commit, run.data_names()) == (commits[1], ["adult", "flights_3m"])


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fit", "--data", "iris"])
    assert "'iris' is not one of adult" in capsys.readouterr().err


def test_higgs_shaped_is_the_same_each_time() -> None:
    one, two = datasets.higgs_shaped(900, 100), datasets.higgs_shaped(900, 100)
    assert one.X_train.shape == (900, 28)
    assert one.X_train.dtype == np.float32
    assert 0.3 < one.y_train.mean() < 0.7
    np.testing.assert_array_equal(one.X_test, two.X_test)
    np.testing.assert_array_equal(one.y_train, two.y_train)


def test_scores_of_a_classifier() -> None:
    X = np.zeros((2, 1), dtype=np.float32)
    data = Dataset("two rows", "classification", X, np.array([0, 1]), X, np.array([0, 1]))
    result = scores(data, np.array([[0.5, 0.5], [1.0, 0.0]]))
    assert result["error"] == 0.5
    floor = np.finfo(np.float32).eps
    assert result["log_loss"] == pytest.approx((np.log(2) - np.log(floor)) / 2)


class _Constant:
    """Predicts the same for every row; fit runs what it is given."""

    def __init__(self, at_fit: Callable[[], object]) -> None:
        self.at_fit = at_fit

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Constant:
        self.at_fit()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.full((len(X), 2), 0.5)


class _Made(Library):
    module = distribution = "json"

    def __init__(self, name: str, at_fit: Callable[[], object]) -> None:
        self.name = self.title = name  # type: ignore[misc]
        self.at_fit = at_fit

    def model(self, task: Task, settings: Settings) -> Any:
        return _Constant(self.at_fit)


def _tiny() -> Dataset:
    X = np.zeros((4, 1), dtype=np.float32)
    y = np.array([0, 1, 0, 1])
    return Dataset("tiny", "classification", X, y, X, y)


def _ignore(line: str) -> None:
    pass


def test_libraries_take_turns_and_a_failure_stops_only_one() -> None:
    calls: list[str] = []

    def fail() -> None:
        raise ValueError("no such thing")

    a, b = _Made("A", lambda: calls.append("A")), _Made("B", lambda: calls.append("B"))
    records = measure(_tiny(), [a, _Made("bad", fail), b], Settings(), 2, _ignore)
    assert calls == ["A", "A", "B", "B", "A", "B"]  # each warms up once, just before its first turn
    assert records[1].failure == "ValueError: no such thing"
    assert len(records[2].samples["fit_seconds"]) == 2
    assert records[0].samples["error"] == [0.5]


@pytest.mark.skipif(not memory.available(), reason="needs /proc/self/clear_refs")
def test_memory_freed_during_a_fit_counts(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.zeros((10, 1), dtype=np.float32))
    np.save(tmp_path / "y.npy", np.zeros(10))
    megabytes = 64
    library = _Made("made", lambda: np.ones(megabytes * 2**17))  # freed at once
    peak = memory.peak_above_input(library, tmp_path, "regression", Settings())
    assert 0.9 * megabytes * 2**20 < peak < 2 * megabytes * 2**20


def _run_with(fit_seconds: dict[str, tuple[float, float]]) -> Run:
    """A fit run of graftboost and LightGBM with given seconds, by data set."""
    run = new_run("fit", "python -m benchmarks fit", [], Settings(), 2)
    for name, seconds in fit_seconds.items():
        for library, best in zip(("graftboost", "lightgbm"), seconds, strict=True):
            record = Record(name, library)
            record.samples = {"fit_seconds": [best + 1, best], "log_loss": [best]}
            run.records.append(record)
    return run


def test_table_and_goals_of_a_run() -> None:
    run = _run_with({"adult": (0.5, 1.0), "letter": (1.02, 1.0)})
    text = as_markdown(run)
    assert "| adult | **0.50** (0.5 s) | 1 (1 s) |" in text
    assert "python -m benchmarks fit" in text
    verdicts = {goal.what: goal.verdict() for goal in goals({run.name: run})}
    assert (
        verdicts["fit time relative to LightGBM's, two threads"]
        == "no: 1.02 (letter), on 2 of 13 data sets"
    )
    assert verdicts["fit time relative to LightGBM's, one thread"] == "not measured"
    assert "log loss -24.0% on average, +2.0% at worst (letter)" in summary(run)


def test_other_libraries_have_two_turns_or_one(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = [_Made(name, lambda: None) for name in ("graftboost", "lightgbm", "other")]
    records = measure(_tiny(), libraries, Settings(), 3, _ignore)
    assert [len(record.samples["fit_seconds"]) for record in records] == [3, 3, 2]
    long = _Made("long", lambda: time.sleep(0.01))
    monkeypatch.setattr("benchmarks.measure.LONG", 0.001)
    (record,) = measure(_tiny(), [long], Settings(), 3, _ignore)
    assert len(record.samples["fit_seconds"]) == 1
    run = new_run("fit", "python -m benchmarks fit", [], Settings(), 3)
    run.records += records
    run.records[2].library = "xgboost"
    assert "best of 3, of 2 or 1 for libraries other than graftboost and LightGBM." in as_markdown(
        run
    )


def test_geometric_mean_of_ratios() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def test_runs_can_be_saved_and_loaded(tmp_path: Path) -> None:
    run = _run_with({"adult": (0.5, 1.0)})
    run.save(tmp_path)
    assert load_runs(tmp_path) == {"fit-threads-2": run}


def test_without_runs_pages_have_no_sections_and_the_index_all_commands(tmp_path: Path) -> None:
    write_pages(tmp_path / "performance.md", {})
    index = (tmp_path / "performance.md").read_text()
    assert all(f"| {goal.what} |" in index for goal in goals({}))
    for page in PAGES:
        assert f"- [{page.title}](performance/{page.name}.md)\n" in index
        text = (tmp_path / "performance" / f"{page.name}.md").read_text()
        assert text.startswith(f"# {page.title}\n")
        for section in page.sections:
            assert f"## {section.title}\n" not in text
            assert f"- {section.title}: `{section.command}`" in index


def test_pages_have_a_section_for_every_run() -> None:
    names = {section.run for page in PAGES for section in page.sections}
    assert set(load_runs(command_line.RESULTS)) <= names


def test_pages_in_the_documentation_begin_with_an_answer() -> None:
    runs = load_runs(command_line.RESULTS)
    folder = arguments.INDEX.with_suffix("")
    assert {path.name for path in folder.iterdir()} == {f"{page.name}.md" for page in PAGES}
    for page in PAGES:
        answer = page.answer(runs)
        assert answer.endswith(".")
        text = (folder / f"{page.name}.md").read_text()
        assert text.startswith(f"# {page.title}\n\n{answer}\n\n")


def test_command_line(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, index = tmp_path / "out", tmp_path / "performance.md"
    common = ["--libraries", "graftboost,sklearn", "--threads", "1", "--repeats", "1"]
    common += ["--output", str(output)]
    assert main(["fit", "--data", "adult,abalone", *common]) == 0
    assert main(["memory", "--data", "abalone", *common]) == 0
    assert main(["import", *common]) == 0
    printed = capsys.readouterr().out
    assert "scikit-learn" in printed

    stored = json.loads((output / "fit-threads-1.json").read_text())
    of_sklearn = [r for r in stored["records"] if r["library"] == "sklearn"]
    assert [r["data"] for r in of_sklearn] == ["adult", "abalone"]
    assert {"fit_seconds", "predict_seconds", "error", "log_loss"} == set(of_sklearn[0]["samples"])
    assert {"fit_seconds", "predict_seconds", "squared_error"} == set(of_sklearn[1]["samples"])

    assert main(["report", "--output", str(output), "--page", str(index)]) == 0
    assert "| goal | wanted | reached |" in index.read_text()
    text = (tmp_path / "performance" / "fit.md").read_text()
    assert "## Two threads" not in text
    assert "## One thread" in text
    assert "python -m benchmarks fit --data adult,abalone" in text
    assert as_markdown(load_runs(output)["fit-threads-1"]) in printed
    assert str(tmp_path) not in text


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=list(LIBRARIES))
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_installed_library_accepts_the_settings(library: Library, task: Task) -> None:
    if not library.available():
        pytest.skip(f"{library.name} is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64) if task == "classification" else X[:, 0].astype(np.float64)
    settings = Settings(iterations=3, threads=1)
    data = Dataset("made", task, X, y, X, y)
    (record,) = measure(data, [library], settings, 1, _ignore)
    assert record.failure is None
    assert library.version() != "unknown"
