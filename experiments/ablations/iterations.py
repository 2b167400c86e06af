"""From 100 to 1000 iterations: error and time of training and updates, and the backdoor."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import LIBRARIES, OURS, warm_up
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.settings import Settings
from benchmarks.updates.timing import copy_of, rows_of, timed
from datasets import Dataset, paper
from experiments.ablations import published
from experiments.ablations.memory import too_large
from experiments.draws import SIZES, WAYS, Way
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Done, Results
from graftboost.audit import backdoor
from graftboost.audit.backdoors import STAGES
from graftboost.audit.plotting import legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEERS = ("lightgbm", "xgboost", "catboost")
ATTACKED = ("optdigits", "pendigits", "letter")
ONE_BY_ONE = 5  # single rows, whose seconds are short and so mostly noise

ITERATIONS: dict[Scale, tuple[int, ...]] = {"quick": (50, 100), "full": published.ITERATIONS}
# Data sets and how many of their rows are used; None for all.
DATA: dict[Scale, dict[str, int | None]] = {
    "quick": {"adult": 2000, "optdigits": 1000},
    "full": {
        "adult": None,
        "credit_info": None,
        "optdigits": None,
        "pendigits": None,
        "letter": None,
    },
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set and number of iterations: our model, each peer, and the backdoor."""
    for name, max_rows in DATA[scale].items():
        for iterations in ITERATIONS[scale]:
            labels = {"data": name, "iterations": iterations}
            parts: dict[str, Callable[[Dataset, Settings], Values]] = {OURS: _ours}
            parts |= {peer: partial(_peer, peer) for peer in PEERS}
            if name in ATTACKED:
                parts["backdoor"] = _backdoor
            for part, measure in parts.items():
                whole = partial(_load_and_measure, name, max_rows, iterations, measure)
                yield Case({**labels, "part": part}, whole)


def _load_and_measure(
    name: str,
    max_rows: int | None,
    iterations: int,
    measure: Callable[[Dataset, Settings], Values],
) -> Values:
    return measure(paper.load(name, max_rows=max_rows), Settings(iterations=iterations))


def _peer(peer: str, data: Dataset, settings: Settings) -> Values:
    library = LIBRARIES[peer]
    if not library.available():
        return {"skipped": [library.title]}
    warm_up(library, "classification", settings)
    gc.collect()
    with library.thread_limit(settings.threads):
        model = library.model("classification", settings)
        seconds, _ = timed(model.fit, data.X_train, data.y_train)
        predicted = library.predict(model, data.X_test, "classification", settings)
    error = float(np.mean(predicted.argmax(axis=1) != data.y_test))
    return {"error": error, "seconds": seconds}


def _backdoor(data: Dataset, settings: Settings) -> Values:
    if short := too_large(data, settings):
        return {"skipped": [f"backdoor of {short}"]}
    model = LIBRARIES[OURS].model("classification", settings)
    found = backdoor(
        model, data.X_train, data.y_train, data.X_test, data.y_test, random_state=0
    ).figures
    stages = {stage: found[stage] for stage in STAGES}
    return {"stages": stages, "strategies": list(found["strategies"])}


def _ours(data: Dataset, settings: Settings) -> Values:
    if short := too_large(data, settings):
        return {"skipped": [short]}
    spare = len(data.y_train) - 1  # lost by every copy before it is measured
    largest = rows_of(max(SIZES.values()), len(data.y_train))
    drawn = np.random.default_rng(0).choice(spare, max(largest, ONE_BY_ONE), replace=False)
    values: Values = {}
    for way in WAYS:
        # One model to take rows from, one to which all that may be added are new.
        gone = drawn if way == "add" else drawn[:0]
        held = np.delete(np.arange(len(data.y_train)), gone)
        model = LIBRARIES[OURS].model("classification", settings)
        fit = partial(model.fit, data.X_train[held], data.y_train[held], row_ids=held)
        gc.collect()
        seconds, _ = timed(fit)
        if way == "remove":
            values |= {"error": _error(model, data), "seconds": seconds}
        values[f"untouched, {way}"] = {"error": _error(model, data)}
        for head, share in SIZES.items():
            rows = drawn[: rows_of(share, len(data.y_train))]
            updated = copy_of(model, spare)
            values[f"{way} {head}"] = _update(updated, data, way, rows, drawn)
            if len(rows) == largest:
                values[f"retrained, {way}"] = {"error": _error(updated.refit(), data)}
            del updated
    return values


def _update(
    model: Any, data: Dataset, way: Way, rows: NDArray[np.int64], drawn: NDArray[np.int64]
) -> Values:
    """One update; single rows are followed by a few others, for the median of their seconds."""
    seconds, refits = [], []
    error = math.nan
    for i in range(ONE_BY_ONE if len(rows) == 1 else 1):
        chosen = drawn[i : i + 1] if len(rows) == 1 else rows
        if way == "remove":
            taken, report = timed(model.remove, chosen)
        else:
            X, y = data.X_train[chosen], data.y_train[chosen]
            taken, report = timed(partial(model.add, X, y, row_ids=chosen))
        seconds.append(taken)
        refits.append(report.strategy == "refit")
        if i == 0:
            error = _error(model, data)
    return {"error": error, "seconds": median(seconds), "refitted": 2 * sum(refits) > len(refits)}


def _error(model: Any, data: Dataset) -> float:
    return float(np.mean(model.predict(data.X_test) != data.y_test))


UPDATES = tuple(f"{way} {head}" for way in reversed(WAYS) for head in SIZES)
TITLES = {
    **{peer: f"{LIBRARIES[peer].title}, trained" for peer in PEERS},
    OURS: "graftboost, trained",
    **{update: update for update in UPDATES},
    "retrained, add": "retrained after add 1%",
    "untouched, add": "untouched by add",
    "retrained, remove": "retrained after remove 1%",
    "untouched, remove": "untouched by remove",
}


CAPTION = (
    "Test error and seconds, the paper's in brackets (its seconds are of another machine). * marks "
    "an update that was a refit. Rows are added to a model that was trained without the 1%, and "
    "removed from one of all rows; retrained is `refit()` after the largest update, untouched the "
    "model before any."
)


def measured(results: Results, name: str, iterations: int, what: str) -> Values | None:
    """Error and seconds of a training or an update, None where there are none."""
    part = what if what in (*PEERS, OURS) else OURS
    values = results.find(data=name, iterations=iterations, part=part)
    if values is None or "error" not in values:
        return None
    return values if part == what else values.get(what)


def tables(results: Results) -> str:
    """A table for each data set, and one of the backdoor."""
    parts = [CAPTION]
    columns: list[int] = results.all_of("iterations")
    for name in results.all_of("data"):
        head = [name, *(f"error, {n}" for n in columns), *(f"seconds, {n}" for n in columns)]
        rows = []
        for what, title in TITLES.items():
            found = [measured(results, name, n, what) for n in columns]
            if any(found):
                errors = [_cell(v, "error", in_percent) for v in found]
                seconds = [_cell(v, "seconds", in_seconds) for v in found]
                errors = _beside(errors, published.ERRORS, name, what, columns, in_percent)
                seconds = _beside(seconds, published.SECONDS, name, what, columns, in_seconds)
                rows.append([title, *errors, *seconds])
        parts.append(table(head, rows))
    return "\n\n".join([*parts, *_backdoor_table(results)])


def _cell(values: Values | None, measure: str, write: Callable[[float], str]) -> str:
    if values is None or measure not in values:
        return "-"
    mark = "*" if measure == "seconds" and values.get("refitted") else ""
    return write(values[measure]) + mark


def _beside(
    cells: list[str],
    figures: published.Figures,
    name: str,
    what: str,
    columns: list[int],
    write: Callable[[float], str],
) -> list[str]:
    """Cells with the paper's figure in brackets, where it has one."""
    theirs = figures.get(name, {}).get(what)
    if theirs is None:
        return cells
    by_iterations = dict(zip(published.ITERATIONS, theirs, strict=True))
    return [
        f"{cell} ({write(by_iterations[n])})" if n in by_iterations and cell != "-" else cell
        for cell, n in zip(cells, columns, strict=True)
    ]


def _backdoor_table(results: Results) -> list[str]:
    rows = []
    for done in results.where(part="backdoor"):
        if "stages" not in done.values:
            continue
        name, n = str(done.labels["data"]), int(done.labels["iterations"])
        stages = done.values["stages"]
        theirs = published.BACKDOOR.get((name, n))
        cells = []
        for i, stage in enumerate(STAGES):
            for j, measure in enumerate(("clean", "attack")):
                text = in_percent(stages[stage][measure])
                cells.append(text if theirs is None else f"{text} ({theirs[i][j]:.2f}%)")
        rows.append([name, f"{n}", *cells, ", ".join(done.values["strategies"])])
    if not rows:
        return []
    head = ["data set", "iterations"]
    head += [f"{stage}, {measure}" for stage in STAGES for measure in ("clean", "attack")]
    head.append("how it was added, removed")
    caption = (
        "**Backdoor**: accuracy on clean test rows, and how often the attack succeeds, the paper's "
        "in brackets. The model from which nothing is removed stays at the figures of "
        f'"{STAGES[2]}".'
    )
    return [caption, table(head, rows)]


def draw(results: Results) -> Figure:
    """Error and seconds over the iterations, and the attack after its rows came and went."""
    columns: list[int] = results.all_of("iterations")
    figure, axes = panels(6, columns=2, size=(4.6, 2.6))
    names = results.all_of("data")

    def series(value: Callable[[str, int], float | None], of: list[str]) -> dict[str, list[float]]:
        found = {name: [value(name, n) for n in columns] for name in of}
        return {name: [math.nan if v is None else v for v in vs] for name, vs in found.items()}

    def of_ours(what: str, measure: str, scale: float = 1.0) -> Callable[[str, int], float | None]:
        def value(name: str, n: int) -> float | None:
            values = measured(results, name, n, what)
            return None if values is None else scale * values[measure]

        return value

    def attack(stage: str) -> Callable[[str, int], float | None]:
        def value(name: str, n: int) -> float | None:
            values = results.find(data=name, iterations=n, part="backdoor")
            stages = (values or {}).get("stages")
            return None if stages is None else 100 * stages[stage]["attack"]

        return value

    shown: tuple[tuple[str, Callable[[str, int], float | None], bool], ...] = (
        ("test error, trained,\nper cent", of_ours(OURS, "error", 100), False),
        ("test error, 1% removed,\nper cent", of_ours("remove 1%", "error", 100), False),
        ("training, seconds", of_ours(OURS, "seconds"), True),
        ("one row removed, seconds", of_ours("remove 1 row", "seconds"), True),
        ("attack, backdoor added,\nper cent", attack(STAGES[2]), False),
        ("attack, backdoor removed,\nper cent", attack(STAGES[3]), False),
    )
    for axis, (title, value, log) in zip(axes, shown, strict=True):
        lines(axis, [str(n) for n in columns], series(value, names))
        if log:
            logarithmic(axis)
        if title.startswith("attack"):
            axis.set_ylim(-3, 105)
        axis.set_ylabel(title)
        axis.set_xlabel("iterations")
    legend(figure, columns=5)
    return figure


def remark(results: Results) -> str:
    """How far updates move the error, whether the attack goes, and what is odd in the paper."""
    words = []
    away = {
        _key(done): max(abs(done.values[u]["error"] - done.values["error"]) for u in UPDATES)
        for done in results.where(part=OURS)
        if "error" in done.values
    }
    if away:
        worst = max(away, key=away.__getitem__)
        words.append(
            f"After every update the test error is within {100 * away[worst]:.2f} points of the "
            f"trained model's ({worst}); the untouched and retrained models in the tables show how "
            "much of that is chance."
        )
    left = {
        _key(done): abs(stages[STAGES[3]]["attack"] - stages[STAGES[0]]["attack"])
        for done in results.where(part="backdoor")
        if (stages := done.values.get("stages"))
    }
    if left:
        worst = max(left, key=left.__getitem__)
        found = [done.values.get("strategies", []) for done in results.where(part="backdoor")]
        refits = sum(strategies.count("refit") for strategies in found)
        words.append(
            f"With the backdoor's rows removed, the attack is at most {100 * left[worst]:.1f} "
            f"points from what it is on a clean model ({worst}). The backdoor is 5% of the rows: "
            f"{refits} of its {sum(map(len, found))} additions and removals were refits."
        )
    for name in ("adult", "credit_info"):
        ours = measured(results, name, 100, "catboost")
        if ours is not None:
            theirs = published.ERRORS[name]["catboost"][0]
            words.append(
                f"CatBoost with 100 iterations has {in_percent(ours['error'])} on {name} here and "
                f"{in_percent(theirs)} in the paper; what was set there is not known."
            )
    return " ".join([*words, _growth(results)]).strip()


def _key(done: Done) -> str:
    return f"{done.labels['data']}, {done.labels['iterations']} iterations"


def _growth(results: Results) -> str:
    """How much longer an update takes with the most iterations than with the fewest."""
    columns: list[int] = results.all_of("iterations")
    factors = {}
    for name in results.all_of("data"):
        few, many = (measured(results, name, n, "remove 0.1%") for n in (columns[0], columns[-1]))
        if few and many:
            factors[name] = many["seconds"] / few["seconds"]
    if not factors or len(columns) < 2:
        return ""
    words = ", ".join(f"{name} {factor:.1f}" for name, factor in factors.items())
    first, *_, last = published.SECONDS["letter"]["remove 0.1%"]
    return (
        f"To remove 0.1% takes, with {columns[-1]} iterations, so many times as long as with "
        f"{columns[0]}: {words}. In the paper's table it takes less time with more iterations on "
        f"letter, {in_seconds(last)} with 1000 and {in_seconds(first)} with 100."
    )


EXPERIMENT = Experiment(
    name="ablation-iterations",
    title="Ablation: number of iterations",
    question=(
        "Models of 100 to 1000 iterations: test error and time after training, after adding and "
        "after removing 1 row, 0.1%, 0.5% and 1%, beside peers that are trained; and whether a "
        "backdoor comes and goes with its rows."
    ),
    paper="Tables 14 to 16",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)
