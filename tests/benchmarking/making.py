"""Short measurements of parts, and their runs."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.libraries import YARDSTICK, Library
from benchmarks.results import Record, Run, new_run
from benchmarks.settings import Settings
from benchmarks.updates.part import Part, Plan
from datasets import Task


class Prior(Library):
    """Stands in for the yardstick: always answers with the shares of the classes."""

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
    """Measure all parts of a command, and write them into a page that has a place for each."""
    output, page = folder / "out", folder / "page.md"
    call = [command, "--quick", "--libraries", "graftboost", "--threads", "1"]
    assert main([*call, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    for kind in kinds:
        assert (output / f"{kind}.md").read_text().strip() in printed
        stored = json.loads((output / f"{kind}.json").read_text())
        assert {record["failure"] for record in stored["records"]} == {None}
    names = ["goals", *kinds]
    page.write_text(
        "".join(f"<!-- benchmarks: {name} -->\nas it was\n<!-- end -->\n" for name in names)
    )
    assert main(["report", "--output", str(output), "--page", str(page)]) == 0
    text = page.read_text()
    assert "as it was" not in text
    assert str(folder) not in text
    return text
