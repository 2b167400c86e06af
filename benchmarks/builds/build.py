"""A build of the package in a folder, and the process that runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from datasets import ROOT

LOCATE = "import graftboost; print(graftboost.__file__)"


class BuildError(Exception):
    """A build cannot be run, or its process ended."""


class RequestError(Exception):
    """A build raised an exception at a request; its process continues."""


@dataclass(frozen=True)
class Build:
    """A folder into which the package was installed, and its label in tables.

    The folder is made with ``pip install --no-deps --target FOLDER .``.
    """

    label: str
    folder: Path

    def environment(self) -> dict[str, str]:
        """Environment of a process that imports this build."""
        return {**os.environ, "PYTHONPATH": str(self.folder.resolve())}

    def check(self) -> None:
        """Raise BuildError if a process would import another build or none.

        An editable install, for example, precedes the folders of PYTHONPATH.
        """
        child = subprocess.run(
            [sys.executable, "-c", LOCATE],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=self.environment(),
        )
        found = Path(child.stdout.strip() or "nothing")
        if child.returncode or not found.resolve().is_relative_to(self.folder.resolve()):
            raise BuildError(
                f"{self.folder} should contain the {self.label} build, but `import graftboost` "
                f"finds {found}. Make the folder with "
                "`pip install --no-deps --target FOLDER .`, and uninstall an editable install."
            )


Builds = tuple[Build, Build]  # old and new


class Worker:
    """The process that runs a build; see `benchmarks.builds.worker` for the requests."""

    def __init__(self, build: Build) -> None:
        self.label = build.label
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.builds.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=build.environment(),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(BrokenPipeError):
            self._requests.close()  # the worker ends at the end of its input
        self._process.wait()
        self._replies.close()

    def ask(self, request: str, **arguments: Any) -> Any:
        """Send a request and wait for the reply."""
        self.send(request, **arguments)
        return self.receive()

    def send(self, request: str, **arguments: Any) -> None:
        """Send a request; `receive` returns its reply."""
        # If the process has ended, `receive` says so.
        with suppress(BrokenPipeError):
            self._requests.write(json.dumps([request, arguments]) + "\n")
            self._requests.flush()

    def receive(self) -> Any:
        """Wait for the reply to a request; raises RequestError if the build raised."""
        line = self._replies.readline()
        if not line:
            code = self._process.wait()
            raise BuildError(f"the process of the {self.label} build ended with exit code {code}")
        reply = json.loads(line)
        if "error" in reply:
            raise RequestError(f"{self.label}: {reply['error']}")
        return reply["result"]


Workers = tuple[Worker, Worker]  # of the old and of the new build


@contextmanager
def workers_of(builds: Builds) -> Iterator[Workers]:
    """Processes of both builds, which end with the context."""
    old, new = builds
    with ExitStack() as stack:
        yield stack.enter_context(Worker(old)), stack.enter_context(Worker(new))
