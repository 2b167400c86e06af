"""The counts of a run, as the table in ``docs/reliability.md``.

``python -m tests.faults.figures build/torture.jsonl`` prints it. With ``--into
docs/reliability.md`` it replaces the table there.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

# The wording of the table for each promise of the tests, in its order.
TITLES = {
    "memory runs out": "an allocation of the engine fails",
    "memory runs out, by a limit of the process": "the process may not have more memory",
    "a call to the disk fails": "a call to the disk fails",
    "the power is cut": "the power is cut",
    "writers are killed": "a writer is killed",
    "processes of a cluster are killed": "processes of a distributed model are killed",
    "the disk is full": "the disk is full",
    "files are damaged": "a file of a store is damaged",
    "files are made up": "a file is made up, with right checksums",
}


def table(report: str) -> str:
    """Return the figures of a report as a table in Markdown."""
    held: dict[str, Counter[str]] = {promise: Counter() for promise in TITLES}
    n_broken: Counter[str] = Counter()
    for line in report.splitlines():
        entry = json.loads(line)
        held[entry["promise"]].update(entry["held"])
        n_broken[entry["promise"]] += len(entry["broken"])
    rows = ["| what happens | trials | held | of these |", "| --- | ---: | ---: | --- |"]
    for promise, title in TITLES.items():
        n_held = held[promise].total()
        n_trials = n_held + n_broken[promise]
        outcomes = "; ".join(f"{n:,} {outcome}" for outcome, n in held[promise].most_common(4))
        rows.append(f"| {title} | {n_trials:,} | {n_held:,} | {outcomes} |")
    return "\n".join(rows)


def put_into(page: str, figures: str) -> str:
    """Return a page with these figures."""
    between = re.compile(f"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)
    changed, n_places = between.subn(lambda _: f"{figures}\n", page)
    if n_places != 1:
        raise SystemExit(f"The page has {n_places} places for figures, from {BEGIN} to {END}.")
    return changed


def main() -> None:
    """Print the figures of a report, or put them into a page."""
    parser = argparse.ArgumentParser(description="Figures of a run of the fault tests")
    parser.add_argument("report", type=Path)
    parser.add_argument("--into", type=Path, help="a page to put them into")
    arguments = parser.parse_args()
    figures = table(arguments.report.read_text())
    if arguments.into is None:
        print(figures)
    else:
        arguments.into.write_text(put_into(arguments.into.read_text(), figures))


if __name__ == "__main__":
    main()
