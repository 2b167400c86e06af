"""100 to 1000 iterations: error and time of training and updates, and the backdoor."""

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
from benchmarks.markdown import in_percent, in_seconds, listed, table
from benchmarks.settings import Settings
from benchmarks.updates.timing import copy_of, rows_of, timed
from datasets import Dataset, paper
from experiments.harness.draws import SIZES, WAYS, Way
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.paper_library import PAPER_LIBRARY
from experiments.harness.results import Done, Results
from experiments.paper.ablations import published
from experiments.paper.ablations.memory import too_large
from graftboost.audit import backdoor
from graftboost.audit.backdoors import STAGES
from graftboost.audit.plotting import legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEERS = ("lightgbm", "xgboost", "catboost")
ATTACKED = ("optdigits", "pendigits", "letter")
ONE_BY_ONE = 5  # single rows are repeated, because their short times are noisy

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
    """Each data set and number of iterations: our model, each library, and the backdoor."""
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
    model = PAPER_LIBRARY.model("classification", settings)
    found = backdoor(
        model, data.X_train, data.y_train, data.X_test, data.y_test, random_state=0
    ).figures
    stages = {stage: found[stage] for stage in STAGES}
    return {"stages": stages, "strategies": list(found["strategies"])}


def _ours(data: Dataset, settings: Settings) -> Values:
    if short := too_large(data, settings):
        return {"skipped": [short]}
    spare = len(data.y_train) - 1  # removed from every copy before it is measured
    largest = rows_of(max(SIZES.values()), len(data.y_train))
    drawn = np.random.default_rng(0).choice(spare, max(largest, ONE_BY_ONE), replace=False)
    values: Values = {}
    for way in WAYS:
        # One model to remove rows from, and one trained without the rows to add.
        gone = drawn if way == "add" else drawn[:0]
        held = np.delete(np.arange(len(data.y_train)), gone)
        model = PAPER_LIBRARY.model("classification", settings)
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
    """One update; single rows are repeated with other rows, for the median of the seconds."""
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
    "retrained, add": "refitted after add 1%",
    "untouched, add": "untouched, before add",
    "retrained, remove": "refitted after remove 1%",
    "untouched, remove": "untouched, before remove",
}


CAPTION = (
    "Test error and seconds, with the paper's in brackets (its seconds are from another machine). "
    "* marks updates that were refits. Rows are added to a model that was trained without the 1%, "
    "and removed from a model trained on all rows. The refitted model is `refit()` after the "
    "largest update; the untouched model is the model before any update."
)


def measured(results: Results, name: str, iterations: int, what: str) -> Values | None:
    """Error and seconds of a training or an update, None if there are none."""
    part = what if what in (*PEERS, OURS) else OURS
    values = results.find(data=name, iterations=iterations, part=part)
    if values is None or "error" not in values:
        return None
    return values if part == what else values.get(what)


def tables(results: Results) -> str:
    """One table for each data set, and one for the backdoor."""
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
    """Cells with the paper's figure in brackets, if it has one."""
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
    head.append("strategies of add and remove")
    caption = (
        "**Backdoor**: accuracy on clean test rows and success rate of the attack, with the "
        f'paper\'s in brackets. The untouched model keeps the figures of "{STAGES[2]}".'
    )
    return [caption, table(head, rows)]


def draw(results: Results) -> Figure:
    """Error and seconds over the iterations, and the attack with and without its rows."""
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
        ("removing one row, seconds", of_ours("remove 1 row", "seconds"), True),
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


def answer(results: Results) -> str:
    """How far updates change the error, and how the time of updates grows."""
    away = {
        _key(done): max(abs(done.values[u]["error"] - done.values["error"]) for u in UPDATES)
        for done in results.where(part=OURS)
        if "error" in done.values
    }
    if not away:
        return ""
    worst = max(away, key=away.__getitem__)
    text = (
        f"After every update, the test error is within {100 * away[worst]:.2f} points of the "
        f"trained model's ({worst})."
    )
    columns: list[int] = results.all_of("iterations")
    factors = _growth(results)
    if factors:
        text += (
            f" Removing 0.1% of the rows takes {min(factors.values()):.1f} to "
            f"{max(factors.values()):.1f} times as long with {columns[-1]} iterations as with "
            f"{columns[0]}."
        )
    return text


def remark(results: Results) -> str:
    """The backdoor, and what is unexpected in the paper's tables."""
    sentences = [
        "The untouched and refitted models show how much of the change in error is random."
    ]
    left = {
        _key(done): abs(stages[STAGES[3]]["attack"] - stages[STAGES[0]]["attack"])
        for done in results.where(part="backdoor")
        if (stages := done.values.get("stages"))
    }
    if left:
        worst = max(left, key=left.__getitem__)
        found = [done.values.get("strategies", []) for done in results.where(part="backdoor")]
        refits = sum(strategies.count("refit") for strategies in found)
        sentences.append(
            "After the rows of the backdoor are removed, the success rate of the attack is within "
            f"{100 * left[worst]:.1f} points of that on a clean model ({worst}). The backdoor has "
            f"5% of the rows; {refits} of its {sum(map(len, found))} additions and removals were "
            "refits."
        )
    for name in ("adult", "credit_info"):
        ours = measured(results, name, 100, "catboost")
        if ours is not None:
            theirs = published.ERRORS[name]["catboost"][0]
            sentences.append(
                f"CatBoost with 100 iterations has an error of {in_percent(ours['error'])} on "
                f"{name} here and {in_percent(theirs)} in the paper, whose settings are not known."
            )
    if factors := _growth(results):
        columns: list[int] = results.all_of("iterations")
        parts = [f"{factor:.1f} ({name})" for name, factor in factors.items()]
        first, *_, last = published.SECONDS["letter"]["remove 0.1%"]
        sentences.append(
            f"From {columns[0]} to {columns[-1]} iterations, the time to remove 0.1% of the rows "
            f"grows by a factor of {listed(parts)}. In the paper's table it falls on letter, from "
            f"{in_seconds(first)} with 100 iterations to {in_seconds(last)} with 1000."
        )
    return " ".join(sentences)


def _key(done: Done) -> str:
    return f"{done.labels['data']}, {done.labels['iterations']} iterations"


def _growth(results: Results) -> dict[str, float]:
    """Seconds of an update with the most iterations relative to the fewest, by data set."""
    columns: list[int] = results.all_of("iterations")
    factors = {}
    for name in results.all_of("data"):
        few, many = (measured(results, name, n, "remove 0.1%") for n in (columns[0], columns[-1]))
        if few and many and len(columns) > 1:
            factors[name] = many["seconds"] / few["seconds"]
    return factors


EXPERIMENT = Experiment(
    name="ablation-iterations",
    title="Ablation: number of iterations",
    question=(
        "For models of 100 to 1000 iterations: test error and time after training, after adding "
        "and after removing 1 row, 0.1%, 0.5% and 1%, compared with other libraries; and the "
        "success rate of a backdoor before and after its rows are removed."
    ),
    paper="Tables 14 to 16",
    caption=(
        "Test error and seconds over the number of iterations, and the success rate of the "
        "backdoor after its rows were added and after they were removed."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)
