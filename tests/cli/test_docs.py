"""The pages about the command line match its behaviour."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]

# Text that differs between runs.
CHANGING = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "<digest>"),
    (re.compile(r"\d[\d.e+-]* ms"), "<time> ms"),
    (re.compile(r"(seconds|removed|to compare)( +)[\d.e-]+"), r"\1\2<time>"),
    (re.compile(r"[\d,]+ bytes|(bytes +)[\d,]+"), "<bytes>"),
    (re.compile(r"[ \t]+"), " "),
]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_up_to_date() -> None:
    made = _module(ROOT / "docs" / "make_cli.py").page()
    assert (ROOT / "docs" / "cli.md").read_text() == made, "run: python docs/make_cli.py"


def _steps(text: str) -> list[tuple[str, str, str]]:
    """Return the blocks of a page that are run: their kind, what is run, and what is printed."""
    steps = []
    for kind, block in re.findall(r"```(python|console)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            steps.append((kind, block, ""))
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            while command.endswith("\\"):
                more, _, printed = printed.partition("\n")
                command = command[:-1] + more
            steps.append((kind, command, printed))
    return steps


def _settled(text: str) -> str:
    for pattern, stand_in in CHANGING:
        text = pattern.sub(stand_in, text)
    return text.strip()


def test_output_in_the_tutorial(tmp_path: Path) -> None:
    """Its commands print what it shows, except for times and digests."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    steps = _steps((ROOT / "docs" / "tutorial.md").read_text())
    assert len(steps) > 8
    for kind, command, printed in steps:
        arguments = [sys.executable, "-c", command] if kind == "python" else shlex.split(command)
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if kind == "console":
            assert _settled(done.stdout) == _settled(printed), command
