"""The benchmarks of large tables, of booking, of threads and of several splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datasets
from benchmarks import accuracy, memory, threads
from benchmarks import results as stored_results
from benchmarks.__main__ import main
from benchmarks.goals import goals
from benchmarks.libraries import ALL_LIBRARIES, FIXED, LIBRARIES, OURS, YARDSTICK
from benchmarks.report import as_markdown
from benchmarks.results import Record, Run, load_runs, new_run
from benchmarks.settings import Settings
from benchmarks.updates import booking, fractions, large, one_row
from datasets import Dataset
from graftboost.estimators.forgetting import Forgetting
from graftboost.estimators.report import UpdateReport

from .making import Prior, make_plan, make_run

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small substitutes for data sets, one of them with an official split."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("adult", "covtype", "pendigits", "abalone"):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 3))
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        target = X[:, 0] + rng.normal(scale=0.3, size=300)
        frame["target"] = target if name == "abalone" else (target > 0).astype(int)
        if name == "pendigits":
            frame["split"] = np.where(np.arange(300) < 240, "train", "test")
        frame.to_parquet(folder / f"{name}.parquet")
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(folder))
    return folder


def _table(n_rows: int = 3_000, name: str = "higgs_shaped_2m") -> Dataset:
    return datasets.higgs_shaped(n_rows, 1, name=name)


def _run(kind: str, *records: Record) -> Run:
    run = new_run(kind, f"python -m benchmarks {kind}", [], Settings(), 2)
    run.records += records
    return run


def test_rows_of_a_large_table_are_removed_and_compared_with_a_refit() -> None:
    few, many, theirs = large.measure_table(_table(), make_plan(Prior()), 1, refit=True)
    assert [record.case["share"] for record in (few, many)] == [0.001, 0.01]
    assert [record.case["rows"] for record in (few, many)] == [3, 30]
    assert [len(record.samples["update_seconds"]) for record in (few, many)] == [2, 1]
    assert len(theirs.samples["fit_seconds"]) == 2
    for record in (few, many):
        assert len(record.samples["most_memory_left"]) == len(record.samples["refits"])
        assert record.samples["change_of_others"][0] >= 0
        assert record.samples["change"][0] >= abs(record.samples["memory_left"][0])
    run = make_run(large.PART, few, many, theirs)
    assert "| higgs_shaped_2m, 3,000 x 28 | 0.1% (3) |" in as_markdown(run)
    # A table of fewer rows does not count for the goals.
    assert {goal.measured for goal in large.goals(run)} == {None}


def test_without_a_refit_only_time_and_the_estimate_are_measured() -> None:
    records = list(large.measure_table(_table(name="higgs_shaped"), make_plan(), 1, refit=False))
    assert [record.library for record in records] == [OURS, OURS]
    assert all("memory_left" not in record.samples for record in records)
    assert all("most_memory_left" in record.samples for record in records)
    assert "| - | - | - | - |" in large.tables(make_run(large.PART, *records))


def _large_records(name: str, memory_left: float, most: list[float]) -> list[Record]:
    return [
        Record(
            name,
            OURS,
            {
                "update_seconds": [0.1, 0.2, 0.3],
                "refits": [0, 0, 0],
                "most_memory_left": most,
                "memory_left": [memory_left],
                "change_of_others": [0.1],
            },
            case={"share": share, "rows": 10, "held": large.ROWS[name], "columns": 28},
        )
        for share in (0.001, 0.01)
    ]


def test_goals_of_large_tables() -> None:
    theirs = Record("flights_3m", YARDSTICK, {"fit_seconds": [4.0, 5.0]})
    records = _large_records("flights_3m", -0.02, [0.5, 0.2, 0.9])
    run = make_run(large.PART, *records, theirs)
    on = ", on 1 of 3 data sets"
    verdicts = [goal.verdict() for goal in large.goals(run)]
    assert verdicts == [
        f"no: 20x (flights_3m){on}",
        f"yes: 20x (flights_3m){on}",
        f"yes: 0.90 (flights_3m){on}",
        "yes: 0.20 (flights_3m), on 1 of 2 data sets",
    ]
    assert [goal.limit for goal in large.goals(run)] == [50, 10, 1, pytest.approx(1 / 3)]
    # Both sizes are needed, and an estimate of each draw.
    run = make_run(large.PART, records[0], theirs)
    assert [goal.measured for goal in large.goals(run)[1:]] == [None] * 3
    records = _large_records("flights_3m", 0.02, [0.5, 0.2])
    assert large.goals(make_run(large.PART, *records, theirs))[2].measured is None


def test_the_estimate_of_the_worst_row_is_relative_to_the_floor() -> None:
    none = np.array([], dtype=np.int64)

    def report(strategy: str, forgetting: Forgetting | None) -> UpdateReport:
        return UpdateReport(strategy, none, none, 0, 0, 0, 0, 0, 0, forgetting)

    record = Record("adult", OURS)
    large._add_estimate(record, report("in-place", Forgetting(0.3, 0.2, 0.1, 0.01, 1, 0)), 0.02)
    large._add_estimate(record, report("refit", None), 0.02)
    assert record.samples == {"refits": [False, True], "most_memory_left": [0.5, 0.0]}
    large._add_estimate(record, report("in-place", None), 0.02)  # not estimated
    assert len(record.samples["most_memory_left"]) == 2


def test_removals_are_only_booked(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    booked: list[Any] = []
    copy_of = booking.copy_of

    def keep(*arguments: Any) -> Any:
        booked.append(copy_of(*arguments))
        return booked[-1]

    monkeypatch.setattr(booking, "copy_of", keep)
    ours, theirs = booking.measure("adult", make_plan(Prior()))
    assert len(ours.samples["booking_seconds"]) == len(theirs.samples["fit_seconds"]) == 2
    assert [model.pending_.rows_removed for model in booked] == [2, 2]
    ours.samples = {"booking_seconds": [0.01, 0.02, 0.03]}
    theirs.samples = {"fit_seconds": [0.2, 0.1]}
    run = make_run(booking.PART, ours, theirs)
    (goal,) = booking.goals(run)
    assert (goal.limit, goal.measured) == (20.0, 5.0)
    assert "| adult | 2 | 20 ms | 0.1 s | **5.0x** |" in as_markdown(run)


def test_sets_with_many_trees_have_fewer_sizes_and_draws(data_folder: Path) -> None:
    plan = make_plan(Prior(), draws=(10, 10))
    *ours, theirs = fractions.measure("covtype", plan)
    assert [(r.case["way"], r.case["share"]) for r in ours] == [("remove", 0.001), ("remove", 0.01)]
    assert [len(r.samples["loss_refitted"]) for r in ours] == [3, 3]
    assert len(theirs.samples["fit_seconds"]) == 2  # one for each size, `repeats` in all


def test_speed_ups_that_are_wanted() -> None:
    limits = {goal.what: goal.limit for goal in goals({})}
    retrain = "speed-up over LightGBM's retrain"
    for what, limit in {
        f"removing 0.1% of the rows: {retrain}, two classes": 15.0,
        f"removing 0.1% of the rows: {retrain}, more classes": 10.0,
        f"removing 1% of the rows: {retrain}": 4.0,
        f"removing or adding one row: {retrain}": 100.0,
        f"removing or adding one row: {retrain}, letter": 200.0,
        f"removing or adding one row: {retrain}, covtype": 1000.0,
        f"removing or adding one row: {retrain}, flights_3m": 5000.0,
        f"removing 1% of the rows, booking only: {retrain}": 20.0,
    }.items():
        assert limits[what] == limit
    assert set(fractions.SPEEDS) | {"flights_3m"} == {*one_row.SMALL, *one_row.WANTED}


def test_splits_differ_and_have_as_many_test_rows(data_folder: Path) -> None:
    for name, n_test in (("adult", 90), ("pendigits", 60)):
        splits = [datasets.load(name, split) for split in range(3)]
        assert [len(data.y_test) for data in splits] == [n_test] * 3
        tests = [set(data.X_test[:, 0].tolist()) for data in splits]
        assert tests[0] != tests[1] != tests[2]
        np.testing.assert_array_equal(splits[0].X_test, datasets.load(name).X_test)
        for data, test in zip(splits, tests, strict=True):
            assert not test & set(data.X_train[:, 0].tolist())


def test_losses_are_means_over_the_splits(data_folder: Path) -> None:
    libraries = [LIBRARIES[OURS], Prior()]
    settings = Settings(iterations=10, threads=1)
    said: list[str] = []
    records = accuracy.measure_accuracy("adult", libraries, settings, 3, said.append)
    assert [len(record.samples["log_loss"]) for record in records] == [3, 3]
    assert len(said) == 3
    records[0].samples["log_loss"], records[1].samples["log_loss"] = (
        [1.0, 2.0, 3.0],
        [1.0, 1.0, 3.0],
    )
    run = _run(accuracy.KIND, *records)
    assert accuracy.above(run, "adult") == pytest.approx(0.2)
    assert "| adult | log loss | **+20.0%** | 2 (1, 2, 3) | 1.667 (1, 1, 3) |" in as_markdown(run)
    of_classes, of_numbers = accuracy.goals(run)
    assert of_classes.verdict() == "no: +20.0% (adult), on 1 of 9 data sets"
    assert of_numbers.verdict() == "not measured"
    assert (of_classes.limit, of_numbers.limit) == (0.01, 0.01)
    records[0].case["splits"] = 1  # a quick run
    assert accuracy.goals(run)[0].measured is None


def _fit_on(library: str, n_threads: int, seconds: float, rows: int = 5_500_000) -> Record:
    case: dict[str, str | float] = {"threads": n_threads, "rows": rows, "columns": 28}
    return Record(threads.DATA, library, {"fit_seconds": [2 * seconds, seconds]}, case=case)


def test_speed_up_from_one_thread_to_two() -> None:
    times = {(OURS, 1): 8.0, (OURS, 2): 4.0, (YARDSTICK, 1): 8.0, (YARDSTICK, 2): 5.0}
    run = _run(threads.KIND, *(_fit_on(*key, seconds) for key, seconds in times.items()))
    (goal,) = threads.goals(run)
    assert goal.verdict() == "yes: 1.25"
    assert goal.wanted() == "at least 1.00"
    assert "| LightGBM | 8 s | 5 s | **1.60** |" in as_markdown(run)


def test_threads_of_a_quick_run_do_not_count() -> None:
    libraries = [LIBRARIES[OURS], Prior()]
    records = threads.measure_threads(libraries, Settings(iterations=3), 2, True, lambda line: None)
    assert [(r.library, r.case["threads"]) for r in records] == [
        (library, n) for library in (OURS, YARDSTICK) for n in (1, 2)
    ]
    assert [len(record.samples["fit_seconds"]) for record in records] == [1, 2, 1, 2]
    assert [goal.measured for goal in threads.goals(_run(threads.KIND, *records))] == [None]


def test_goals_of_memory() -> None:
    peaks = {
        ("higgs_shaped", OURS): 2.4e9,
        ("higgs_shaped", FIXED.name): 0.6e9,
        ("higgs_shaped", YARDSTICK): 0.5e9,
        ("covtype", OURS): 0.9e9,
    }
    records = [Record(*key, {"peak_bytes": [peak]}) for key, peak in peaks.items()]
    run = _run("memory", *records)
    assert [goal.verdict() for goal in memory.goals(run)] == [
        "no: 2.40 GB",
        "yes: 0.90 GB",
        "yes: 1.20",
    ]
    assert [goal.limit for goal in memory.goals(None)] == [2.3e9, 1.0e9, 1.3]
    assert "| graftboost | graftboost, `updatable=False` | LightGBM |" in as_markdown(run)


@pytest.mark.skipif(not memory.available(), reason="needs /proc/self/clear_refs")
def test_memory_is_also_measured_without_the_state(data_folder: Path, tmp_path: Path) -> None:
    call = ["memory", "--data", "adult", "--libraries", "graftboost", "--threads", "1"]
    assert main([*call, "--output", str(tmp_path / "out")]) == 0
    (run,) = load_runs(tmp_path / "out").values()
    assert [(r.library, r.failure) for r in run.records] == [(OURS, None), (FIXED.name, None)]
    assert list(run.versions) == ["graftboost"]
    assert set(LIBRARIES) == set(ALL_LIBRARIES) - {FIXED.name}


def test_all_runs_every_command_and_resumes_each(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_results, "this_commit", lambda: "abc")
    made: list[str] = []
    begun: list[str] = []
    for name in ("_parts", "_memory", "_store", "_import", "_many_rows", "_columns"):
        monkeypatch.setattr(
            f"benchmarks.__main__.{name}", lambda *arguments, name=name: begun.append(name)
        )

    def measure_accuracy(name: str, *arguments: Any) -> list[Record]:
        if made == ["adult", "pendigits"]:
            made.append("interrupted")
            raise KeyboardInterrupt
        made.append(name)
        return [Record(name, OURS, {"log_loss": [1.0], "squared_error": [1.0]})]

    fitted: list[tuple[str, int]] = []

    def measure(data: Dataset, libraries: Any, settings: Settings, *others: Any) -> list[Record]:
        fitted.append((data.name, settings.threads))
        return [Record(data.name, OURS, {"fit_seconds": [1.0]})]

    monkeypatch.setattr(accuracy, "measure_accuracy", measure_accuracy)
    monkeypatch.setattr("benchmarks.__main__.measure", measure)
    call = ["all", "--quick", "--libraries", "graftboost", "--output", str(tmp_path / "out")]
    with pytest.raises(KeyboardInterrupt):
        main(call)
    assert not begun
    assert main([*call, "--resume"]) == 0
    assert made == ["adult", "pendigits", "interrupted", "abalone"]
    assert fitted == [("adult", 2), ("pendigits", 2), ("abalone", 2), ("adult", 1)]
    assert begun == ["_columns", "_many_rows", "_memory", "_import", "_parts", "_store", "_parts"]
    runs = load_runs(tmp_path / "out")
    assert set(runs) == {"fit-threads-2", "fit-threads-1", "threads", "accuracy"}
    assert runs["accuracy"].data_names() == ["adult", "pendigits", "abalone"]
