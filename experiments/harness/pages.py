"""Results as files beside their JSON, and as one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.goals import goals_table
from experiments.harness.experiment import Experiment, Scale
from experiments.harness.results import Results, load_results

INTRODUCTION = (
    "The tables and figures of *Online Gradient Boosting Decision Tree: In-Place Updates for "
    "Efficient Adding/Deleting Data*, run with graftboost, and some of our own. Every comparison "
    "has the control that it needs: a model to which nothing is done, and one that is trained "
    "again. Unless said otherwise models have 20 leaves, 100 iterations and shrinkage 0.1. The "
    "page is written by `python -m experiments report`."
)

RESOLUTION = 110  # dots per inch: legible on a page, and a picture stays under 150 kB


def write_files(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write the table as Markdown and the picture as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{experiment.name}.md").write_text(_body(experiment, results) + "\n")
    if not any(results.where()):
        return
    figure = experiment.draw(results)
    # Without the date and the version that matplotlib writes, the same figure is the same file.
    figure.savefig(folder / f"{experiment.name}.png", dpi=RESOLUTION, metadata={"Software": None})


def write_page(experiments: Sequence[Experiment], scale: Scale, folder: Path, page: Path) -> None:
    """Write one page with every experiment of which the folder holds results."""
    found = [(e, r) for e in experiments if (r := load_results(folder, e.name)) is not None]
    missing = [e for e in experiments if e.name not in {found_one.name for found_one, _ in found}]
    parts = [_head(found, scale)]
    for experiment, results in found:
        write_files(experiment, results, folder)
        picture = os.path.relpath(folder / f"{experiment.name}.png", page.parent)
        parts += [f"## {experiment.title}", _body(experiment, results)]
        if any(results.where()):
            parts.append(f"![{experiment.title}]({picture})")
    if missing:
        lines = [f"- {e.title}: `{command_of(e, scale)}`" for e in missing]
        parts += ["## Not run yet", "\n".join(lines)]
    page.write_text("\n\n".join(parts) + "\n")


def command_of(experiment: Experiment, scale: Scale) -> str:
    """Command that runs an experiment."""
    return f"python -m experiments run {experiment.name} --scale {scale}"


def _head(found: Sequence[tuple[Experiment, Results]], scale: Scale) -> str:
    lines = ["# Results", INTRODUCTION]
    if scale == "quick":
        lines.append("These are the quick runs: small samples, few draws. They show that it works.")
    if found:
        results = found[0][1]
        machine = ", ".join(
            value if name in ("processor", "system") else f"{name} {value}"
            for name, value in results.machine.items()
        )
        versions = ", ".join(f"{name} {value}" for name, value in results.versions.items())
        lines.append(f"Measured on: {machine}. {versions}.")
    held = [goal for e, r in found if any(r.where()) for goal in e.goals(r)]
    goals = [goal for goal in held if goal.measured is not None]
    if goals:
        lines += ["## What we hold ourselves to", goals_table(goals)]
    contents = [f"- [{e.title}](#{_anchor(e.title)})" for e, _ in found]
    return "\n\n".join([*lines, "## Contents", "\n".join(contents)])


def _anchor(title: str) -> str:
    kept = [c for c in title.lower() if c.isalnum() or c in " -_"]
    return "".join(kept).replace(" ", "-")


def _body(experiment: Experiment, results: Results) -> str:
    origin = f"The paper's {experiment.paper}." if experiment.paper else "Ours; not in the paper."
    run = (
        f"{origin} `{command_of(experiment, results.scale)}`, {results.dates()}, "
        f"{results.seconds():,.0f} s."
    )
    parts = [experiment.question, run]
    if any(results.where()):
        parts += [experiment.tables(results), experiment.remark(results)]
    if skipped := results.skipped():
        parts.append(f"Skipped: {', '.join(skipped)}.")
    parts += [f"Failed: {failure}." for failure in results.failures()]
    return "\n\n".join(part for part in parts if part)
