"""Rows with a backdoor are added to a model and removed again (Table 4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.goal import Goal, points
from benchmarks.libraries import OURS
from benchmarks.markdown import in_percent, table
from benchmarks.settings import Settings
from datasets import paper
from experiments.harness.contenders.ours import Ours, Paper
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.paper_library import PAPER_LIBRARY
from experiments.harness.results import Results
from graftboost import audit
from graftboost.audit.backdoors import STAGES
from graftboost.audit.plotting import bars, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULES = {kind.name: kind for kind in (Ours, Paper)}

SHARES = (0.05, 0.01)  # of training rows with the trigger

# Data sets, and how many of their rows are used (None for all).
DATA: dict[Scale, dict[str, int | None]] = {
    "quick": {"optdigits": 1500, "pendigits": 1500},
    "full": {"optdigits": None, "pendigits": None, "letter": None, "covtype": None},
}

# Clean accuracy and success rate of the attack at each stage, in per cent.
PAPER = {
    "optdigits": ((96.21, 8.91), (96.27, 100.0), (95.94, 100.0), (95.82, 9.69)),
    "pendigits": ((96.11, 3.97), (96.43, 100.0), (96.48, 100.0), (96.51, 5.55)),
    "letter": ((93.9, 1.38), (94.08, 100.0), (93.62, 100.0), (93.78, 3.48)),
    "covtype": ((78.4, 47.83), (78.32, 100.0), (78.38, 100.0), (78.38, 51.71)),
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set and share, under our rule and the paper's."""
    for name, max_rows in DATA[scale].items():
        for share in SHARES:
            for rule in RULES:
                measure = partial(_measure, name, max_rows, share, rule)
                yield Case({"data": name, "share": share, "rule": rule}, measure)


def _measure(name: str, max_rows: int | None, share: float, rule: str) -> Values:
    data = paper.load(name, max_rows=max_rows)
    model = PAPER_LIBRARY.model("classification", Settings())
    model.set_params(**RULES[rule].parameters)
    rows = (data.X_train, data.y_train, data.X_test, data.y_test)
    found = audit.backdoor(model, *rows, share=share)
    kept = (*STAGES, "rows", "strategies")
    return {name: found.figures[name] for name in kept}


def tables(results: Results) -> str:
    """Accuracy and success rate at each stage, ours and the paper's."""
    rows = []
    for name in results.all_of("data"):
        for done in results.where(data=name):
            values = done.values
            cells = [_cell(values[stage]["clean"], values[stage]["attack"]) for stage in STAGES]
            title = RULES[str(done.labels["rule"])].title
            how = " and ".join(values["strategies"])
            rows.append([name, f"{done.labels['share']:.0%}", title, *cells, how])
        told = [_cell(clean / 100, attack / 100) for clean, attack in PAPER[name]]
        rows.append([name, "-", "the paper", *told, "-"])
    head = ["data set", "rows with trigger", "", *STAGES, "strategies of add and remove"]
    return (
        "Accuracy on clean test rows / success rate of the attack, which is the share of test rows "
        "with the trigger that get the attacker's label. The untouched model keeps the figures of "
        f'"{STAGES[2]}".\n\n' + table(head, rows)
    )


def _cell(clean: float, attack: float) -> str:
    return f"{in_percent(clean)} / {in_percent(attack)}"


def _under_ours(results: Results, name: str, share: float) -> Values | None:
    return results.find(data=name, share=share, rule=OURS)


def draw(results: Results) -> Figure:
    """Each stage, under our rule."""
    shown = {
        f"{name}, {share:.0%}": values
        for name in results.all_of("data")
        for share in SHARES
        if (values := _under_ours(results, name, share)) is not None
    }
    figure, axes = panels(2, columns=1, size=(9.0, 2.8))
    titles = {"attack": "success rate of the attack", "clean": "accuracy on clean rows"}
    for axis, (measure, title) in zip(axes, titles.items(), strict=True):
        series = {
            stage: [100 * values[stage][measure] for values in shown.values()] for stage in STAGES
        }
        bars(axis, list(shown), series)
        axis.set_title(title)
        axis.set_ylabel("per cent")
    legend(figure)
    return figure


def answer(results: Results) -> str:
    """Whether the attack comes and goes with its rows."""
    done = list(results.where())
    if not done:
        return ""
    added = min(float(each.values[STAGES[2]]["attack"]) for each in done)
    left = max(_off(each.values, "attack") for each in done)
    return (
        "After its rows are added, the attack succeeds on at least "
        f"{in_percent(added)} of the test rows with the trigger. After they are removed, its "
        f"success rate is within {points(left)[1:]} of that of a clean model."
    )


def remark(results: Results) -> str:
    """What differs from the paper's set-up, and removals without a refit."""
    done = list(results.where())
    in_place = [d for d in done if d.values["strategies"][1] == "in-place"]
    off = max((_off(done.values, "attack") for done in in_place), default=0.0)
    return (
        "The trigger sets the first five features to their maximum. The paper uses a few of the "
        "first features and does not state the number of rows. The success rate on a clean model "
        "depends on these choices, so it differs from the paper's. Many of these updates change so "
        "much that they are refits, after which the attack fails by definition. In the "
        f"{len(in_place)} removals in place (of {len(done)}), the success rate is within "
        f"{points(off)[1:]} of the clean model's."
    )


def goals(results: Results) -> list[Goal]:
    """The attack succeeds with its rows and fails without them, also without a refit."""
    cases = {
        f"{name}, {share:.0%}": values
        for name in results.all_of("data")
        for share in SHARES
        if (values := _under_ours(results, name, share)) is not None
    }
    many = f", {SHARES[0]:.0%}"
    added = {n: v[STAGES[2]]["attack"] for n, v in cases.items() if n.endswith(many)}
    in_place = {n: v for n, v in cases.items() if v["strategies"][1] == "in-place"}
    goals = [Goal("backdoor: success rate after adding 5%", 1.0, added, in_percent, least=True)]
    for which, among in (("removing", cases), ("removing in place", in_place)):
        left = {n: _off(v, "attack") for n, v in among.items()}
        lost = {n: _off(v, "clean") for n, v in among.items()}
        whose = f"after {which} minus that of the clean model"
        goals.append(Goal(f"backdoor: success rate {whose}", 0.03, left, points))
        goals.append(Goal(f"backdoor: clean accuracy {whose}", 0.005, lost, points))
    return goals


def _off(values: Values, measure: str) -> float:
    return abs(float(values[STAGES[3]][measure]) - float(values[STAGES[0]][measure]))


EXPERIMENT = Experiment(
    name="backdoor",
    title="Backdoor",
    question=(
        "Rows with a trigger and a label chosen by an attacker are added to a clean model and "
        "removed again. Does the attack succeed after they are added, and fail after they are "
        "removed?"
    ),
    paper="Table 4",
    caption=(
        "Success rate of the attack and accuracy on clean rows at each stage, under the default "
        "rule, by data set and share of rows with the trigger."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
    goals=goals,
)
