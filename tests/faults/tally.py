"""Counts of trials and of kept promises, for the figures in ``docs/reliability.md``."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

# A file to which every test adds a line; none by default.
REPORT = os.environ.get("GRAFTBOOST_TORTURE_REPORT")
MOST_SHOWN, MOST_TEXT = 20, 300  # trials of a test that fails, and characters of each


class BrokenPromiseError(Exception):
    """A promise was broken."""


def promised(condition: bool, otherwise: str) -> None:
    """Raise an error if a promise was broken."""
    if not condition:
        raise BrokenPromiseError(otherwise)


class Tally:
    """The outcomes of the trials of one test.

    Parameters
    ----------
    promise : str
        What the trials test, the same for all tests of a file.
    """

    def __init__(self, promise: str) -> None:
        self.promise = promise
        self.held: Counter[str] = Counter()
        self.broken: list[str] = []

    def add(self, held: bool, outcome: str, trial: str = "") -> None:
        """Count a trial; `trial` identifies it if the promise was broken."""
        if held:
            self.held[outcome] += 1
        else:
            self.broken.append(f"{trial}: {outcome}" if trial else outcome)

    def check(self) -> None:
        """Report the counts, and fail if a promise was broken."""
        if REPORT:
            line = {"promise": self.promise, "held": self.held, "broken": self.broken}
            with Path(REPORT).open("a") as file:
                file.write(json.dumps(line) + "\n")
        n_trials = self.held.total() + len(self.broken)
        shown = "\n".join(f"  {trial[:MOST_TEXT]}" for trial in self.broken[:MOST_SHOWN])
        assert not self.broken, f"{len(self.broken)} of {n_trials} trials:\n{shown}"
