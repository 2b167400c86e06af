"""The benchmark of skewed columns and categories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import columns
from benchmarks.__main__ import main
from benchmarks.goals import goals
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.report import as_markdown
from benchmarks.results import Record, Run, load_runs, new_run
from benchmarks.settings import Settings
from datasets import SKEWED, skewed

from .making import Prior


def _run(*records: Record) -> Run:
    run = new_run(columns.KIND, "python -m benchmarks columns", [], Settings(), 2)
    run.records += records
    return run


def _record(name: str, library: str, form: str, seconds: float) -> Record:
    case: dict[str, str | float] = {"form": form, "rows": 100, "columns": 20}
    return Record(name, library, {"fit_seconds": [seconds, 2 * seconds]}, case=case)


def test_codes_and_categories_are_the_same_rows() -> None:
    data = skewed(500, shares=(0.3, 0.97))
    for c, name in enumerate(data.frame):
        np.testing.assert_array_equal(data.frame[name].cat.codes, data.codes[:, c])
    n_values = [len(data.frame[name].cat.categories) for name in data.frame]
    assert (n_values[0], n_values[-1]) == (2, 300)
    assert set(np.unique(data.y)) == {0, 1}


@pytest.mark.parametrize("shares", [None, (0.6, 0.95)])
def test_the_most_frequent_value_has_its_share(shares: tuple[float, float] | None) -> None:
    codes = skewed(20_000, shares=shares).codes.astype(np.int64)
    found = np.array([np.bincount(column).max() / len(column) for column in codes.T])
    if shares is None:
        assert found[0] < 0.52
        assert found[-1] < 0.01
    else:
        np.testing.assert_allclose([found.min(), found.max()], shares, atol=0.02)


def test_both_forms_of_every_library_are_measured() -> None:
    libraries = [LIBRARIES[OURS], Prior()]
    settings = Settings(iterations=3, threads=1)
    said: list[str] = []
    records = columns.measure_columns("few_values", libraries, settings, 2, True, said.append)
    assert [(record.library, record.case["form"]) for record in records] == [
        (library, form) for library in (OURS, YARDSTICK) for form in columns.FORMS
    ]
    for record in records:
        assert len(record.samples["fit_seconds"]) == 2
        assert len(record.samples["log_loss"]) == 1
    assert len(said) == 8
    text = columns.text(_run(*records))
    assert "| few_values | 2,000 x 20 | codes |" in text
    assert "| few_values | 2,000 x 20 | categories |" in text


def test_goals_compare_with_the_same_form_and_with_codes() -> None:
    records = [
        _record(name, library, form, seconds)
        for name in SKEWED
        for library, form, seconds in (
            (OURS, "codes", 0.7),
            (OURS, "categories", 0.9),
            (YARDSTICK, "codes", 1.0),
            (YARDSTICK, "categories", 1.5),
        )
    ]
    measured = [goal.verdict() for goal in columns.goals(_run(*records))]
    assert [verdict.split(" ")[0] for verdict in measured] == ["yes:", "yes:", "no:"]
    assert ["0.70" in measured[0], "0.60" in measured[1], "0.90" in measured[2]] == [True] * 3
    assert {goal.verdict() for goal in columns.goals(None)} == {"not measured"}
    assert {goal.what for goal in columns.goals(None)} <= {goal.what for goal in goals({})}


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, index = tmp_path / "out", tmp_path / "performance.md"
    assert main(["columns", "--quick", "--threads", "1", "--output", str(output)]) == 0
    (run,) = load_runs(output).values()
    assert run.data_names() == list(SKEWED)
    assert as_markdown(run) in capsys.readouterr().out
    assert main(["report", "--output", str(output), "--page", str(index)]) == 0
    text = (tmp_path / "performance" / "fit.md").read_text()
    assert "python -m benchmarks columns --threads 1 --quick" in text
