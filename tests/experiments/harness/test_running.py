"""Running, storing and showing experiments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("rich")

from rich.console import Console

from benchmarks.goal import Goal, times
from experiments import __main__ as command_line
from experiments.harness import results as stored
from experiments.harness.catalogue import EXPERIMENTS
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.pages import write_pages
from experiments.harness.results import Results, load_results
from experiments.harness.running import run
from graftboost.audit.plotting import lines, panels


def _experiment(measure: Callable[[int], Values], n_cases: int = 3) -> Experiment:
    def cases(scale: Scale) -> Iterator[Case]:
        for i in range(n_cases):
            yield Case({"data": "made", "i": i}, lambda i=i: measure(i))

    def draw(results: Results) -> Any:
        figure, (axis,) = panels(1)
        lines(axis, list(range(3)), {"ours": [0.0, 1.0, 2.0]})
        return figure

    return Experiment(
        name="made",
        title="Made: what it is",
        question="Is it so?",
        paper="Table 0",
        caption="What it shows.",
        cases=cases,
        answer=lambda results: "It is so. It always was.",
        tables=lambda results: f"{len(list(results.where()))} cases",
        draw=draw,
        remark=lambda results: "It is.",
        goals=lambda results: [Goal("made", 1.0, {"made": 0.5}, times)],
    )


def _run(
    experiment: Experiment, folder: Path, *, again: bool = False, resume: bool = False
) -> Results:
    (results,) = run(
        [experiment], "quick", folder, again=again, resume=resume, console=Console(quiet=True)
    )
    return results


def test_a_case_is_measured_once(tmp_path: Path) -> None:
    measured: list[int] = []
    experiment = _experiment(lambda i: measured.append(i) or {"value": i})
    _run(experiment, tmp_path)
    assert measured == [0, 1, 2]
    assert _run(experiment, tmp_path).find(i=1) == {"value": 1}
    assert measured == [0, 1, 2]
    _run(experiment, tmp_path, again=True)
    assert measured == [0, 1, 2, 0, 1, 2]


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
    def interrupted(i: int) -> Values:
        if i == 1:
            raise KeyboardInterrupt
        return {"value": i}

    with pytest.raises(KeyboardInterrupt):
        _run(_experiment(interrupted), tmp_path)
    measured: list[int] = []
    _run(_experiment(lambda i: measured.append(i) or {}), tmp_path)
    assert measured == [1, 2]


def _at(commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "this_commit", lambda: commit)


def test_resuming_repeats_the_cases_of_other_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def measure(i: int) -> Values:
        if i == 1 and len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(i)
        return {"value": i}

    _at("abc", monkeypatch)
    _run(_experiment(lambda i: {}), tmp_path)
    assert {done.commit for done in load_results(tmp_path, "made").cases} == {"abc"}
    _at("abd", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        _run(_experiment(measure), tmp_path, resume=True)
    interrupted = load_results(tmp_path, "made")
    assert [done.commit for done in interrupted.cases] == ["abc", "abc", "abd"]  # none is lost
    assert interrupted.commits() == "commits abc, abd"
    measured.append(-1)
    results = _run(_experiment(measure), tmp_path, resume=True)
    assert measured == [0, -1, 1, 2]
    assert results.commits() == "commit abd"
    # Without --resume, cases of any commit count; without a commit, none can be resumed.
    _at("", monkeypatch)
    _run(_experiment(measure), tmp_path)
    assert measured == [0, -1, 1, 2]
    _run(_experiment(measure), tmp_path, resume=True)
    assert measured == [0, -1, 1, 2, 0, 1, 2]


def test_results_of_another_machine_are_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _at("abc", monkeypatch)
    _run(_experiment(lambda i: {}), tmp_path)
    monkeypatch.setattr(stored, "this_machine", lambda: {"cores": "1"})
    measured: list[int] = []
    _run(_experiment(lambda i: measured.append(i) or {}), tmp_path, resume=True)
    assert measured == [0, 1, 2]


def test_pages_state_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _at("abc", monkeypatch)
    experiment = _experiment(lambda i: {})
    _run(experiment, tmp_path)
    write_pages([experiment], "quick", tmp_path, tmp_path / "results.md")
    assert ", commit abc, in 0 s." in (tmp_path / "results" / "made.md").read_text()
    assert "before updates had a target" not in (tmp_path / "results.md").read_text()
    _at("", monkeypatch)
    _run(experiment, tmp_path, again=True)
    write_pages([experiment], "quick", tmp_path, tmp_path / "results.md")
    assert "commit" not in (tmp_path / "results" / "made.md").read_text()
    assert "before updates had a target" in (tmp_path / "results.md").read_text()


def test_failed_cases_are_reported_and_tried_again(tmp_path: Path) -> None:
    def failing(i: int) -> Values:
        if i == 1:
            raise RuntimeError("no memory")
        return {"skipped": ["catboost"]}

    results = _run(_experiment(failing), tmp_path)
    assert results.failures() == ["made, i 1: RuntimeError: no memory"]
    assert len(list(results.where())) == 2
    write_pages([_experiment(failing)], "quick", tmp_path, tmp_path / "results.md")
    text = (tmp_path / "results" / "made.md").read_text()
    assert "Failed: made, i 1: RuntimeError: no memory." in text
    assert "Skipped: catboost." in text
    assert not _run(_experiment(lambda i: {}), tmp_path).failures()


def test_removed_cases_are_dropped(tmp_path: Path) -> None:
    _run(_experiment(lambda i: {}), tmp_path)
    assert len(_run(_experiment(lambda i: {}, n_cases=2), tmp_path).cases) == 2


def test_a_measurement_is_stored_on_one_line(tmp_path: Path) -> None:
    _run(_experiment(lambda i: {"values": [i / 3] * 100}), tmp_path)
    text = (tmp_path / "made.json").read_text()
    stored = [case["values"]["values"] for case in json.loads(text)["cases"]]
    assert stored == [[0.0] * 100, [0.3333333] * 100, [0.6666667] * 100]
    assert [line.count("0.3333333") for line in text.splitlines() if "0.33" in line] == [100]
    assert load_results(tmp_path, "unknown") is None


def test_pages(tmp_path: Path) -> None:
    experiment = _experiment(lambda i: {})
    _run(experiment, tmp_path / "measured")
    index = tmp_path / "results.md"
    write_pages([experiment, EXPERIMENTS["backdoor"]], "quick", tmp_path / "measured", index)
    text = index.read_text()
    for part in (
        "- [Made: what it is](results/made.md) (Table 0): It is so. It always was.",
        "| made | at most 1.00 | yes: 0.50 |",
        "## Not run yet\n\n- Backdoor: `python -m experiments run backdoor --scale quick`",
    ):
        assert part in text
    page = (tmp_path / "results" / "made.md").read_text()
    assert page.startswith("# Made: what it is\n\nIt is so. It always was.\n\n")
    for part in (
        "![Made: what it is](made.png)\n\nWhat it shows.\n\n",
        "## Setup\n\nIs it so? This repeats the paper's Table 0.\n\n",
        "```bash\npython -m experiments run made --scale quick\n```",
        "## Tables\n\n3 cases\n\n## Discussion\n\nIt is.",
    ):
        assert part in page
    assert (tmp_path / "results" / "made.png").read_bytes().startswith(b"\x89PNG")


def test_pages_in_the_documentation_are_complete() -> None:
    folder = command_line.INDEX.with_suffix("")
    index = command_line.INDEX.read_text()
    for name in EXPERIMENTS:
        assert f"](results/{name}.md)" in index
        assert (folder / f"{name}.md").is_file()
        assert (folder / f"{name}.png").is_file()
    assert len(list(folder.iterdir())) == 2 * len(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_catalogue(name: str) -> None:
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    for scale in ("quick", "full"):
        keys = [case.key for case in experiment.cases(scale)]
        assert keys
        assert len(set(keys)) == len(keys)


class TestCommandLine:
    def test_list(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert command_line.main(["list"]) == 0
        assert "backdoor            Backdoor\n" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["run", "unknown"], "'unknown' is not one of"),
            (["run", "backdoor", "--data", "/nowhere"], "--data /nowhere is not a folder"),
        ],
    )
    def test_wrong_arguments(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert command_line.main(arguments) == 2
        assert message in " ".join(capsys.readouterr().err.split())

    def test_run_and_report(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        made = {"made": _experiment(lambda i: {})}
        monkeypatch.setattr(command_line, "EXPERIMENTS", made)
        folder = ["--output", str(tmp_path)]
        assert command_line.main(["run", "made", *folder]) == 0
        assert command_line.main(["report", "--scale", "quick", *folder]) == 0
        assert "[Made: what it is]" in (tmp_path / "results.md").read_text()

    def test_a_failure_shows_in_the_exit_code(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command_line, "EXPERIMENTS", {"made": _experiment(lambda i: 1 / 0)})
        assert command_line.main(["run", "--output", str(tmp_path)]) == 1
