"""Short measurements of parts, and their runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.libraries import YARDSTICK, Library
from benchmarks.pages import PAGES
from benchmarks.report import as_markdown
from benchmarks.results import Record, Run, load_runs, new_run
from benchmarks.settings import Settings
from benchmarks.updates.part import Part, Plan
from datasets import Task


class Prior(Library):
    """Replaces the yardstick: always predicts the shares of the classes."""

    name = title = YARDSTICK
    module = distribution = "json"

    def model(self, task: Task, settings: Settings) -> Any:
        from sklearn.dummy import DummyClassifier

        return DummyClassifier()


def make_plan(*peers: Library, **changes: Any) -> Plan:
    settings = Settings(iterations=10, threads=1)
    return replace(Plan(settings, peers, 2, lambda line: None, quick=True, draws=(2, 1)), **changes)


def make_run(part: Part, *records: Record) -> Run:
    run = new_run(part.kind, f"python -m benchmarks {part.command}", [], Settings(), 2)
    run.records += records
    return run


def publish_all(
    command: str, kinds: Collection[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> str:
    """Measure all parts of a command and write the pages; returns that of the command."""
    output, index = folder / "out", folder / "performance.md"
    call = [command, "--quick", "--libraries", "graftboost", "--threads", "1"]
    assert main([*call, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    for kind, run in load_runs(output).items():
        assert kind in kinds
        assert as_markdown(run) in printed
        assert {record.failure for record in run.records} == {None}
    assert main(["report", "--output", str(output), "--page", str(index)]) == 0
    text = (folder / "performance" / f"{command}.md").read_text()
    sections = {section.run: section for page in PAGES for section in page.sections}
    assert all(f"## {sections[kind].title}\n" in text for kind in kinds)
    assert str(folder) not in text
    return text
