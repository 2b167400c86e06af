"""Fits of every library that accepts sparse data, in separate processes; updates of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import datasets
from benchmarks import memory
from benchmarks.libraries import LIBRARIES, OURS, warm_up
from benchmarks.settings import Settings
from experiments.harness.contenders.ours import Ours, Paper
from experiments.harness.draws import SIZES, WAYS
from experiments.harness.experiment import Case, Scale, Values
from experiments.paper.updates.measuring import Plan as UpdatePlan
from experiments.paper.updates.measuring import Updates

PEERS = ("xgboost", "lightgbm", "catboost")  # scikit-learn's accepts no sparse data
WHO = (*PEERS, OURS)
RULES = (Ours, Paper)
LONG = 60.0  # seconds: a library whose first fit takes longer is fitted once
TRAINING, UPDATING = "training", "updates"


@dataclass(frozen=True)
class StandIn:
    """A data set that replaces one of the paper's."""

    title: str
    paper: str  # which of the paper's
    why: str


SETS = {
    "news20_ngrams": StandIn(
        "News20 n-grams*",
        "News20",
        "the same newsgroups, with words and pairs of words counted by us, ten groups against ten",
    ),
    "reuters21578": StandIn(
        "Reuters-21578*",
        "RCV1",
        "newswire of the same agency, ten years earlier",
    ),
    "rcv1_sample": StandIn("RCV1, a sample*", "RCV1", "one in twenty of its training rows"),
}


@dataclass(frozen=True)
class Plan(UpdatePlan):
    """How much is measured on one data set; ``trainings`` is the number of turns."""

    limit: float = 600.0  # seconds that a process may take for one fit


SMALL = Settings(iterations=10)
QUICK = {
    "reuters21578": Plan(600, singles=2, draws=1, trainings=1, settings=SMALL, limit=60.0),
    "rcv1_sample": Plan(400, singles=2, draws=1, trainings=1, settings=SMALL, limit=60.0),
}
FULL = {
    "news20_ngrams": Plan(singles=5, draws=2),
    "reuters21578": Plan(),
    "rcv1_sample": Plan(),
}


def cases(scale: Scale) -> Iterator[Case]:
    """Two cases for each data set: all trainings, and our updates."""
    measured = {TRAINING: trainings, UPDATING: updates}
    for name, plan in (QUICK if scale == "quick" else FULL).items():
        for what, measure in measured.items():
            yield Case({"data": name, "what": what}, partial(measure, name, plan))


def trainings(name: str, plan: Plan) -> Values:
    """Seconds and bytes of a fit, by library, and why there are none.

    A library may crash, as CatBoost does in the paper, or take too long. Each fit therefore runs
    in a separate process, and a library that failed is not fitted again.
    """
    if not memory.available():
        return {"skipped": ["training: this system does not report the peak memory of a process"]}
    data = datasets.load_sparse(name, plan.max_rows)
    asked = [LIBRARIES[who] for who in WHO]
    going = [library for library in asked if library.available()]
    values: Values = {
        "rows": data.X_train.shape[0],
        "tested": data.X_test.shape[0],
        "columns": data.X_train.shape[1],
        "stored": data.X_train.nnz / data.X_train.shape[0],
        "turns": plan.trainings,
        "measured": {library.name: {} for library in going},
        "failed": {},
        "skipped": [library.title for library in asked if library not in going],
    }
    for _ in range(plan.trainings):
        records = memory.measure_peaks(data, going, plan.settings, _quiet, plan.limit)
        for record in records:
            for what, found in record.samples.items():
                values["measured"][record.library].setdefault(what, []).extend(found)
            if record.failure:
                values["failed"][record.library] = record.failure
        quick = {r.library for r in records if (r.best("fit_seconds") or LONG) < LONG}
        going = [library for library in going if library.name in quick]
    return values


def updates(name: str, plan: Plan) -> Values:
    """Seconds of our updates, and the change that they cause in the loss of the rows."""
    data = datasets.load_sparse(name, plan.max_rows)
    warm_up(LIBRARIES[OURS], data.task, plan.settings)
    values: Values = {"rows": len(data.y_train), "trees": plan.settings.iterations}
    for way in WAYS:
        values[way] = Updates(data, Ours, way, plan, RULES).measure(tuple(SIZES))
    return values


def _quiet(line: str) -> None:
    pass
