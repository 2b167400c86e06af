"""Two builds are compared from end to end; how fast anything is, is not tested here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import datasets
import graftboost
from benchmarks.__main__ import main
from benchmarks.builds.build import Build, Workers
from benchmarks.builds.cases import CASES, LOSSES, RULES
from benchmarks.builds.digests import digests_of
from benchmarks.builds.models import compare_models, first_differences
from benchmarks.builds.speed import OPERATIONS, ROW_OUT, SHARE_OUT, Times, measure
from graftboost import _engine

from .making import make_plan

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

PACKAGE = Path(graftboost.__file__).parent
INSTALLED = PACKAGE.parent


def _ignore(line: str) -> None:
    pass


class _Recorder:
    """Replaces the process of a build: keeps the requests, each of which takes a given time."""

    def __init__(self, seconds: float, log: list[float]) -> None:
        self.seconds, self.log = seconds, log
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def ask(self, request: str, **arguments: Any) -> Any:
        self.requests.append((request, arguments))
        self.log.append(self.seconds)
        return [3000, 50] if request == "load" else self.seconds


def test_both_builds_update_the_same_rows_in_turns() -> None:
    log: list[float] = []
    old, new = _Recorder(2.0, log), _Recorder(1.0, log)
    times = Times(cast(Workers, (old, new)))
    assert measure("adult", times, make_plan()) == 3000
    assert old.requests == new.requests
    assert log.count(2.0) == log.count(1.0)
    assert log[4:8] == [2.0, 1.0, 1.0, 2.0]  # the first two predictions
    removed = [arguments["rows"] for request, arguments in old.requests if request == "remove"]
    assert len({tuple(rows) for rows in removed}) == len(removed) / 2  # two repeats of each draw
    assert {len(rows) for rows in removed} == {1, 3}
    for operation in OPERATIONS:
        assert times.both(min, operation) == [2.0, 1.0]


def test_an_update_is_the_mean_over_draws_of_the_least_repeat() -> None:
    times = Times(cast(Workers, ()))
    times.seconds[ROW_OUT, 0] = [3.0, 1.0, 1.1], [1.0, 2.0, 2.0]
    times.seconds[ROW_OUT, 1] = [5.0, 5.0, 9.0], [8.0, 2.0, 3.0]
    times.seconds[SHARE_OUT, 0] = [100.0], [100.0]
    assert times.cells(ROW_OUT) == [
        ROW_OUT,
        *("3 s", "1.5 s", "0.50"),
        *("3.05 s", "2.5 s", "0.82"),
    ]


def test_every_rule_is_compared_under_every_loss() -> None:
    assert {rule["update_rule"] for rule in RULES.values()} == {"fidelity", "regret", "rank"}
    for name, rule in RULES.items():
        for kind in (*LOSSES, "text"):
            assert rule.items() <= CASES[f"{kind}-{name}"].parameters.items()
    floors = [rule.get("memory_floor") for rule in RULES.values()]
    assert 0 in floors


def test_models_depend_on_the_fidelity() -> None:
    digests = [digests_of(CASES[f"logistic-fidelity-{name}"]) for name in ("0.5", "1", "floor-0")]
    fits, first_updates = ([models[i]["trees"] for models in digests] for i in (0, 1))
    assert len(set(fits)) == 1
    assert len(set(first_updates)) > 1


def test_first_differences() -> None:
    steps = CASES["refresh-logistic"].steps
    old = [{"trees": f"trees {i}", "rows": f"rows {i}"} for i in range(len(steps) + 1)]
    assert first_differences(old, old, steps) == {}
    new = [{**digests, "rows": "others"} for digests in old]
    new[3:] = [{"trees": "others", "rows": "others"}] * len(new[3:])
    assert first_differences(old, new, steps) == {"rows": "0: fit", "trees": "3: remove 5"}


@pytest.mark.skipif(Path(_engine.__file__).parent != PACKAGE, reason="the install is editable")
def test_steps_at_which_models_differ_are_named(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "graftboost")
    for name, change in [
        ("regressor", "GraftBoostRegressor.refresh = lambda self: self"),
        ("classifier", "GraftBoostClassifier.add = None"),
    ]:
        with (tmp_path / "graftboost" / "estimators" / f"{name}.py").open("a") as file:
            file.write(f"\n{change}\n")
    builds = Build("old", INSTALLED), Build("new", tmp_path)
    builds[1].check()
    names = ["squared-regret-0", "refresh-squared", "new-classes-of-two"]
    text = compare_models(builds, _ignore, names)
    assert text.startswith("3 cases, 15 models: 2 cases differ.\n")
    assert "squared-regret-0" not in text
    assert "| refresh-squared | trees | 2: refresh |" in text
    assert "| refresh-squared | predictions | 2: refresh |" in text
    assert "| new-classes-of-two | new: TypeError: " in text


def test_tables_of_speed_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "target"])
    frame["target"] = (frame["a"] > frame["target"]).astype(int)
    frame.to_parquet(tmp_path / "adult.parquet")
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path))
    folder = str(INSTALLED)
    call = ["builds", "--only", "speed,memory", "--quick", "--threads", "1", folder, folder]
    assert main(call) == 0
    printed = capsys.readouterr().out
    for operation in OPERATIONS:
        assert f"| adult | 280 | {operation} | " in printed
    assert "failed" not in printed
    assert "Peak memory" in printed


def test_folders_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["builds", str(tmp_path), str(tmp_path), "--only", "models"]) == 2
    assert f"{tmp_path} should contain the old build" in capsys.readouterr().err
    for call in (["builds", "old"], ["fit", "old", "new"]):
        with pytest.raises(SystemExit):
            main(call)
        assert "two folders" in capsys.readouterr().err
