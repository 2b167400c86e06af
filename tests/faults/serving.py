"""Another Python process with a preloaded library, which answers requests."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

Ask = Callable[..., Any]


@contextlib.contextmanager
def server(module: str, environment: Mapping[str, str]) -> Iterator[Ask]:
    """Start a module, which calls `serve`; yields a function that sends it a request."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None

        def ask(**request: Any) -> Any:
            requests.write(json.dumps(request) + "\n")
            requests.flush()
            line = answers.readline()
            assert line, f"{module} has ended"
            answer = json.loads(line)
            assert "error" not in answer, answer["error"]
            return answer["answer"]

        yield ask
        requests.close()


def serve(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer requests until there are no more; then remove temporary files."""
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        for line in sys.stdin:
            try:
                found = {"answer": answer(json.loads(line))}
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
