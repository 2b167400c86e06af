"""Results as Markdown: one page with a picture for each experiment, and an index of the pages."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.goals import goals_table
from experiments.harness.experiment import Experiment, Scale
from experiments.harness.results import Results, load_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTRODUCTION = (
    "This page lists the experiments of *Online Gradient Boosting Decision Tree: In-Place Updates "
    "for Efficient Adding/Deleting Data*, repeated with graftboost, and experiments of our own. "
    "Every comparison includes two controls: the untouched model, which is not updated, and a "
    "retrained or refitted model. Models have 20 leaves, 100 iterations and a learning rate of "
    "0.1, unless stated otherwise."
)
WRITTEN = (
    "The pages are written by `python -m experiments report` from the measurements in "
    "`experiments/results`; each page states the command that measures its figures, and the commit "
    "of the package that was measured. `python -m experiments run --scale full --resume` measures "
    "all of them, for several hours; if it is interrupted, the same command continues."
)
# Results without a commit are older; these of them are not as old as the others.
WITH_FIDELITY = ("fidelity", "frontier", "stability")
BEFORE_FIDELITY = (
    "All but the pages on fidelity, on forgetting against cost and on long sequences were measured "
    "before updates had a target fidelity: the regret rule as it was then, with a tolerance of "
    "1.2, was the default. Pages that state a commit were measured since."
)
QUICK = "These are quick runs on small samples. They only show that everything works."

RESOLUTION = 110  # dots per inch
COLOURS = 128  # of a picture


def write_pages(experiments: Sequence[Experiment], scale: Scale, folder: Path, index: Path) -> None:
    """Write a page for every experiment with results in the folder, and the index of the pages.

    The pages and pictures are written to the folder with the name of the index: ``results/`` for
    ``results.md``.
    """
    found = [(e, r) for e in experiments if (r := load_results(folder, e.name)) is not None]
    missing = [e for e in experiments if all(e is not there for there, _ in found)]
    for experiment, results in found:
        write_page(experiment, results, pages_folder(index))
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text(_index(found, missing, scale, pages_folder(index).name))


def pages_folder(index: Path) -> Path:
    """Folder of the pages that an index lists."""
    return index.with_suffix("")


def write_page(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write the page of one experiment, and its picture as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{experiment.name}.md").write_text(_page(experiment, results))
    if any(results.where()):
        _save(experiment.draw(results), folder / f"{experiment.name}.png")


def _save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG with a palette, which takes a third of the space."""
    from PIL import Image  # matplotlib depends on it

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=RESOLUTION)
    image = Image.open(drawn).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def command_of(experiment: Experiment, scale: Scale) -> str:
    """Command that runs an experiment."""
    return f"python -m experiments run {experiment.name} --scale {scale}"


def _index(
    found: Sequence[tuple[Experiment, Results]],
    missing: Sequence[Experiment],
    scale: Scale,
    folder: str,
) -> str:
    old = any(not r.commits() for e, r in found if e.name not in WITH_FIDELITY)
    parts = ["# Results", INTRODUCTION, f"{WRITTEN} {BEFORE_FIDELITY}" if old else WRITTEN]
    if scale == "quick":
        parts.append(QUICK)
    if found:
        parts.append(_circumstances(found[0][1]))
    goals = [goal for e, r in found if any(r.where()) for goal in e.goals(r)]
    measured = [goal for goal in goals if goal.measured is not None]
    if measured:
        parts += ["## Goals", goals_table(measured)]
    groups = {
        "## Our own experiments": [(e, r) for e, r in found if e.paper is None],
        "## The paper's tables and figures": [(e, r) for e, r in found if e.paper is not None],
    }
    for title, group in groups.items():
        if group:
            parts += [title, "\n".join(_entry(e, r, folder) for e, r in group)]
    if missing:
        lines = [f"- {e.title}: `{command_of(e, scale)}`" for e in missing]
        parts += ["## Not run yet", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _entry(experiment: Experiment, results: Results, folder: str) -> str:
    """A line of the index, with the answer in full."""
    origin = f" ({experiment.paper})" if experiment.paper else ""
    entry = f"- [{experiment.title}]({folder}/{experiment.name}.md){origin}"
    answer = experiment.answer(results) if any(results.where()) else ""
    return f"{entry}: {answer}" if answer else entry


def _circumstances(results: Results) -> str:
    machine = ", ".join(
        value if name in ("processor", "system") else f"{name} {value}"
        for name, value in results.machine.items()
    )
    versions = ", ".join(f"{name} {value}" for name, value in results.versions.items())
    return f"Machine: {machine}. Versions: {versions}."


def _page(experiment: Experiment, results: Results) -> str:
    measured = any(results.where())
    parts = [f"# {experiment.title}"]
    if measured:
        parts += [
            experiment.answer(results),
            f"![{experiment.title}]({experiment.name}.png)",
            experiment.caption,
        ]
    facts = (results.dates(), results.commits(), f"in {results.seconds():,.0f} s")
    origin = "This experiment is not in the paper."
    if experiment.paper:
        origin = f"This repeats the paper's {experiment.paper}."
    parts += [
        "## Setup",
        f"{experiment.question} {origin}",
        f"```bash\n{command_of(experiment, results.scale)}\n```",
        f"Measured {', '.join(fact for fact in facts if fact)}.",
    ]
    if skipped := results.skipped():
        parts.append(f"Skipped: {', '.join(skipped)}.")
    parts += [f"Failed: {failure}." for failure in results.failures()]
    if measured:
        parts += ["## Tables", experiment.tables(results)]
        if remark := experiment.remark(results):
            parts += ["## Discussion", remark]
    return "\n\n".join(part for part in parts if part) + "\n"
