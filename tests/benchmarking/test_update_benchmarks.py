"""The measurements of updates run from end to end. Speed is not tested here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datasets
from benchmarks.__main__ import main
from benchmarks.goal import Goal, fold
from benchmarks.goals import goals
from benchmarks.libraries import OURS, YARDSTICK
from benchmarks.report import as_markdown
from benchmarks.results import Record, load_runs
from benchmarks.settings import Settings
from benchmarks.updates import fractions, learners, one_row, rows, sizes, stream
from benchmarks.updates.forgetting import add_estimate, estimated, in_digits, pooled
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.parts import PARTS, PARTS_BY_KIND
from benchmarks.updates.timing import copy_of, new_model
from datasets import Task
from graftboost.estimators.forgetting import Forgetting
from graftboost.estimators.report import UpdateReport

from .making import Prior, make_plan, make_run, publish_all

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small substitutes for the data sets of a quick run."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, n_rows, n_classes in [
        ("adult", 400, 2),
        ("pendigits", 300, 3),
        ("optdigits", 300, 4),
        ("electricity", 1800, 2),
        ("flights_3m", 300, 2),
    ]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, 3))
        ranks = (X[:, 0] + rng.normal(scale=0.3, size=n_rows)).argsort().argsort()
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        frame["target"] = ranks * n_classes // n_rows
        frame.to_parquet(folder / f"{name}.parquet")
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(folder))
    return folder


def test_all_parts_from_the_command_line_to_the_page(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = publish_all("updates", PARTS_BY_KIND, tmp_path, capsys)
    assert "forgetting" in text


def test_one_part_of_one_data_set_and_its_options(data_folder: Path, tmp_path: Path) -> None:
    call = ["updates", "--quick", "--only", "fractions,stream", "--data", "adult"]
    call += ["--fidelity", "0.5,0.85", "--draws", "3,1", "--libraries", "graftboost"]
    assert main([*call, "--output", str(tmp_path)]) == 0
    (run,) = load_runs(tmp_path).values()  # the stream uses another data set
    assert run.command.endswith(
        "updates --data adult --libraries graftboost --only fractions,stream "
        "--fidelity 0.5,0.85 --draws 3,1 --quick"
    )
    record = run.find("adult", OURS, way="remove", share=0.001, fidelity=0.5)
    assert record is not None
    assert len(record.samples["loss_refitted"]) == 3
    assert all(0 <= share <= 1 for share in record.samples["rows_regrown"])
    # The goals are for the default fidelity.
    by_default = run.find("adult", OURS, way="remove", share=0.001, fidelity=0.85)
    assert by_default is not None
    assert (record.case["default"], by_default.case["default"]) == (False, True)
    measured = {goal.what: goal.measured for goal in goals({run.name: run})}
    assert measured["forgetting of 0.1%, at worst"] == pooled(by_default).value


def test_updates_of_one_row_and_of_a_customer(data_folder: Path) -> None:
    records = list(fractions.measure("adult", make_plan(fidelities=(0.5, 0.75), draws=(3, 1))))
    found = [(r.case["way"], r.case["share"], r.case["fidelity"], r.case["rows"]) for r in records]
    sizes_and_rows = ((1, 1), (5, 5), (0.001, 1), (0.01, 3))  # of 280 rows
    assert found == [
        (way, size, fidelity, n_rows)
        for way in ("remove", "add")
        for size, n_rows in sizes_and_rows
        for fidelity in (0.5, 0.75)
    ]
    assert [len(r.samples["refits"]) for r in records[:8:2]] == [3, 3, 3, 1]
    text = fractions.tables(make_run(fractions.PART, *records))
    for size in ("1 row", "5 rows", "0.1% (1)", "1% (3)"):
        assert text.count(f"| adult | {size} | 0.5 | ") == 2


def test_estimated_fidelity_is_beside_the_measured_forgetting(data_folder: Path) -> None:
    plan = make_plan(settings=Settings(iterations=30, threads=1), draws=(4, 2))
    records = list(fractions.measure("adult", plan))
    heads = ["forgetting | estimated | rows regrown", "learning | estimated | rows regrown"]
    text = fractions.tables(make_run(fractions.PART, *records))
    assert all(text.count(head) == 1 for head in heads)
    for record in records:
        samples = record.samples
        n_draws, n_rows = len(samples["refits"]), int(record.case["rows"])
        assert len(samples["achieved"]) == len(samples["memory_left"]) == n_draws
        # What was achieved is measured: it is the change of the losses.
        change = n_rows * (np.array(samples["loss_after"]) - samples["loss_before"])
        sign = 1 if record.case["way"] == "remove" else -1
        np.testing.assert_allclose(samples["achieved"], sign * change, atol=1e-4)
        estimate = estimated(record)
        total = sum(samples["achieved"]) + sum(samples["memory_left"])
        if total > 0:
            assert estimate == pytest.approx(sum(samples["achieved"]) / total)
        cells = [_size_of(record), "0.85", f"**{pooled(record)}**", in_digits(estimate)]
        assert f"| adult | {' | '.join(cells)} | " in text


def _size_of(record: Record) -> str:
    words = {1: "1 row", 5: "5 rows", 0.001: "0.1% (1)", 0.01: "1% (3)"}
    return words[float(record.case["share"])]


def _report(strategy: str, forgetting: Forgetting | None, n_removed: int) -> UpdateReport:
    added, removed = np.arange(2 - n_removed), np.arange(n_removed)
    return UpdateReport(strategy, added, removed, 0, 0, 0, 0, 0, 0, forgetting)


def test_a_refit_counts_with_its_measured_change_and_leaves_nothing() -> None:
    record = _losses([1.0, 1.0], [1.1, 1.5], [1.2, 1.5])
    record.samples["refits"] = [0, 1]
    add_estimate(record, _report("in-place", Forgetting(0.3, 0.2, 0.1, 0.2, 1, 0), 2), 2)
    assert estimated(record) is None  # not yet for each draw
    add_estimate(record, _report("refit", None, 2), 2)
    assert record.samples["achieved"] == pytest.approx([0.3, 2 * 0.5])
    assert record.samples["memory_left"] == [0.2, 0.0]
    assert estimated(record) == pytest.approx(1.3 / 1.5)
    # For added rows, a decrease of the losses counts.
    add_estimate(record, _report("refit", None, 0), 2)
    assert record.samples["achieved"][-1] == pytest.approx(-2 * 0.5)


def test_nothing_is_estimated_under_other_rules() -> None:
    record = Record("adult", OURS, {"refits": [0], "loss_before": [1.0], "loss_after": [1.1]})
    add_estimate(record, _report("in-place", None, 2), 2)
    assert "achieved" not in record.samples
    assert estimated(record) is estimated(None) is None
    nothing = {"refits": [0.0], "achieved": [-0.1], "memory_left": [0.1]}
    assert estimated(Record("adult", OURS, nothing)) is None


def test_runs_with_tolerances_can_be_shown() -> None:
    samples = {
        **_losses([1.0], [1.1], [1.2]).samples,
        "update_seconds": [0.1],
        "refit_seconds": [1.0],
        "rows_regrown": [0.2],
        "refits": [0.0],
    }
    case = {"way": "remove", "share": 0.001, "tolerance": 1.2, "default": True, "rows": 28}
    run = make_run(fractions.PART, Record("adult", OURS, samples, case=case))
    assert "| adult | 0.1% (28) | tolerance 1.2 | **0.50** | - | 20.0% |" in fractions.tables(run)
    by_title = {
        stream.title_of(Record("adult", OURS, case={what: value})): what
        for what, value in (("tolerance", 1.2), ("fidelity", 0.75))
    }
    assert by_title == {
        "graftboost, updated, tolerance 1.2": "tolerance",
        "graftboost, updated, fidelity 0.75": "fidelity",
    }


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--only", "two-rows", "'two-rows' is not one of one-row"),
        ("--draws", "3", "two numbers"),
        ("--fidelity", "1,-1", "from 0 to 1"),
        ("--fidelity", "0.5,1.2", "from 0 to 1"),
    ],
)
def test_wrong_options_are_refused(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["updates", option, value])
    assert message in capsys.readouterr().err


def test_goal_with_a_least_value() -> None:
    goal = Goal("times faster", 60, {"adult": 61.0, "letter": 59.0, "covtype": None}, fold, False)
    at_least = replace(goal, least=True)
    assert at_least.wanted() == "at least 60x"
    assert at_least.verdict() == "no: 59x (letter), on 2 of 3 data sets"
    assert replace(at_least, mean=True).verdict() == "yes: 60x, on 2 of 3 data sets"
    assert goal.verdict() == "no: 61x (adult), on 2 of 3 data sets"


def test_yardstick_is_the_best_retrain_over_the_median_update(data_folder: Path) -> None:
    records = one_row.measure("adult", make_plan(Prior()))
    ours, theirs = records
    assert len(ours.samples["remove_seconds"]) == len(ours.samples["add_seconds"]) == 5
    assert len(theirs.samples["fit_seconds"]) == 2
    ours.samples = {"remove_seconds": [0.001, 0.002, 9], "add_seconds": [0.004], "refits": [0]}
    theirs.samples = {"fit_seconds": [0.4, 0.2]}
    run = make_run(one_row.PART, *records)
    verdict = one_row.goals(run)[0].verdict()  # of removing and adding, the slower one
    assert verdict == "no: 50x (adult), on 1 of 6 data sets"
    assert "| 0.2 s | **100x** (2 ms) | **50x** (4 ms) | 0 |" in as_markdown(run)


def _losses(before: list[float], after: list[float], refitted: list[float]) -> Record:
    samples = {"loss_before": before, "loss_after": after, "loss_refitted": refitted}
    return Record("adult", OURS, samples)


def test_forgetting_is_pooled_over_the_draws() -> None:
    record = _losses([1.0, 1.0], [1.1, 1.6], [1.0, 2.0])  # the first draw alone would divide by 0
    assert pooled(record).value == pytest.approx(0.7)
    assert pooled(None).value is None
    equal = _losses([1.0] * 4, [1.5] * 4, [2.0] * 4)
    assert (pooled(equal).low, pooled(equal).high) == pytest.approx((0.5, 0.5))


def test_untouched_model_forgets_nothing() -> None:
    assert pooled(_losses([1.0, 2.0], [1.0, 2.0], [1.5, 2.5])).value == 0


def test_copies_have_been_updated_once(data_folder: Path) -> None:
    data = datasets.load("adult")
    model = new_model(make_plan()).fit(data.X_train, data.y_train)
    copied = copy_of(model, 7, fidelity=0.25)
    assert (model.n_rows_ - 1, 0.25) == (copied.n_rows_, copied.fidelity)
    assert 7 in model.row_ids_
    assert 7 not in copied.row_ids_


@pytest.mark.parametrize(
    ("rule", "title"),
    [
        ({"tolerance_rule": "regret", "tolerance": 1.0}, "regret 1"),  # in older runs
        ({"update_rule": "rank", "tolerance": 0.0}, "rank 0"),
        ({"update_rule": "fidelity", "fidelity": 0.75}, "fidelity 0.75"),
    ],
)
def test_goal_requires_all_sizes(rule: dict[str, Any], title: str) -> None:
    records = [
        Record(
            "adult",
            OURS,
            {"update_seconds": [1.2 if share == 0.05 else 0.1], "refit_seconds": [1.0]},
            case={"way": "remove", "share": share, **rule, "strategy": "in-place"},
        )
        for share in sizes.SHARES
    ]
    (whole,) = sizes.goals(make_run(sizes.PART, *records))
    assert whole.verdict() == "no: 1.20 (adult), on 1 of 5 data sets"
    (part,) = sizes.goals(make_run(sizes.PART, *records[:3]))
    assert part.verdict() == "not measured"
    assert f"| adult | remove | {title} | **0.10** (0.1 s) |" in sizes.tables(
        make_run(sizes.PART, *records)
    )


def test_rows_of_a_quick_run_do_not_count_for_the_goal(data_folder: Path) -> None:
    run = make_run(rows.PART, *rows.measure("flights_3m", make_plan()))
    assert "Ratio of many rows to few" in rows.tables(run)
    assert [goal.measured for goal in rows.goals(run)] == [None]
    for record, n_rows in zip(run.records, rows.FEW_AND_MANY, strict=True):
        record.case["rows"] = n_rows
        record.samples = {"remove_seconds": [float(n_rows)]}
    assert [goal.measured for goal in rows.goals(run)] == [60.0]


def test_window_slides_over_the_stream(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = []

    def keep(plan: Plan, task: Task) -> Any:
        models.append(new_model(plan, task))
        return models[-1]

    monkeypatch.setattr(learners, "new_model", keep)
    ours, by_default, untouched, theirs = stream.measure("electricity", make_plan(Prior()))
    last = stream.QUICK_WINDOW + stream.QUICK_STEPS * stream.STEP
    held = np.sort(models[0].row_ids_)
    assert untouched.case["untouched"]
    assert ours.case["tolerance"] == stream.TOLERANT
    assert (models[0].update_rule, models[0].tolerance) == ("regret", stream.TOLERANT)
    assert "tolerance" not in by_default.case
    assert by_default.case["fidelity"] == models[1].fidelity
    assert (models[1].update_rule, models[1].tolerance) == ("fidelity", None)
    assert models[2].row_ids_.max() == stream.QUICK_WINDOW - 1
    np.testing.assert_array_equal(held, np.arange(last - stream.QUICK_WINDOW, last))
    # The first window is learned, and each step is predicted before it is learned.
    for record in (ours, theirs):
        assert len(record.samples["learn_seconds"]) == stream.QUICK_STEPS + 1
        assert len(record.samples["error"]) == stream.QUICK_STEPS
    assert len(theirs.samples["fit_seconds"]) == stream.QUICK_STEPS + 1
    above, faster, above_river = stream.goals(make_run(stream.PART, ours, theirs))
    assert above.measured is not None
    assert above.measured < 0
    assert faster.measured is not None
    assert above_river.verdict() == "not measured"


def test_a_slow_step_of_the_yardstick_does_not_count_in_our_favour() -> None:
    ours = Record("electricity", OURS, {"learn_seconds": [9.0, 1.0, 1.0, 2.0], "error": [0.2]})
    ours.case["tolerance"] = stream.TOLERANT
    theirs = Record("electricity", YARDSTICK, {"learn_seconds": [9.0, 4.0, 4.0, 99.0]})
    _, faster, _ = stream.goals(make_run(stream.PART, ours, theirs))
    assert faster.measured == 3.0  # three steps of 4 seconds, over 4 seconds


def test_river_is_measured_on_the_stream(data_folder: Path) -> None:
    pytest.importorskip("river")
    ours, *_, river = stream.measure("electricity", make_plan(stream.RIVER))
    assert (ours.library, river.library) == (OURS, "river")
    assert sum(river.samples["error"]) / stream.QUICK_STEPS < 0.4
    assert "| river |" in stream.tables(make_run(stream.PART, ours, river))


def test_missing_library_is_skipped_and_named(
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, library in ((YARDSTICK, type(stream.PART.peers[0])), ("river", learners.River)):
        monkeypatch.setattr(library, "module", f"no_{name}_here")
    call = ["updates", "--quick", "--only", "stream", "--output", str(tmp_path)]
    assert main(call) == 0
    said = capsys.readouterr().err
    assert "skipping LightGBM: it is not installed" in said
    assert "skipping river: it is not installed" in said
    (run,) = load_runs(tmp_path).values()
    assert list(run.versions) == ["graftboost"]


def test_failures_are_reported_and_the_rest_is_measured(data_folder: Path) -> None:
    def fail(name: str, plan: Plan) -> list[Record]:
        raise ValueError("no such thing")

    part = replace(PARTS["drift"], measure=fail)
    records = part.records("adult", make_plan())
    run = make_run(part, *records)
    assert "adult failed: ValueError: no such thing." in as_markdown(run)
    assert {goal.verdict() for goal in part.goals(run)} == {"not measured"}


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_goals_of_parts_that_were_not_measured_are_listed(part: Part) -> None:
    wanted = part.goals(None)
    assert wanted
    assert {goal.verdict() for goal in wanted} == {"not measured"}


def test_runs_saved_without_cases_can_be_loaded(tmp_path: Path) -> None:
    run = make_run(PARTS["drift"], Record("adult", OURS))
    path = run.save(tmp_path)
    stored = json.loads(path.read_text())
    del stored["records"][0]["case"]
    path.write_text(json.dumps(stored))
    assert load_runs(tmp_path) == {run.name: run}
