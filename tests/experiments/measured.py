"""Results of cases, as they are read back from a file."""

from __future__ import annotations

import json
from collections.abc import Iterable

from experiments.harness.experiment import Case
from experiments.harness.results import Done, Results


def measured(name: str, cases: Iterable[Case]) -> Results:
    """Measure cases of an experiment."""
    results = Results(name, "quick")
    for case in cases:
        values = json.loads(json.dumps(case.measure(), allow_nan=False))
        results.add(Done(dict(case.labels), values, 0.0))
    return results
