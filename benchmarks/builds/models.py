"""Whether both builds make the same models, and where they first differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.builds.build import Builds, RequestError, workers_of
from benchmarks.builds.cases import CASES
from benchmarks.markdown import table

Digests = Mapping[str, str]  # of the parts of a model


def compare_models(
    builds: Builds, say: Callable[[str], None], names: Iterable[str] = tuple(CASES)
) -> str:
    """Digests of the models of cases in both builds: how many there are, and which differ."""
    n_cases = n_models = 0
    different: dict[str, Mapping[str, str]] = {}
    with workers_of(builds) as workers:
        for name in names:
            for worker in workers:  # at the same time, because no time is measured
                worker.send("digests", case=name)
            digests: list[list[Digests]] = []
            found: dict[str, str] = {}
            for worker in workers:
                try:
                    digests.append(worker.receive())
                except RequestError as error:
                    found[str(error)] = "-"
            if not found:
                old, new = digests
                found = first_differences(old, new, CASES[name].steps)
                n_models += len(old)
            n_cases += 1
            say(f"{name}  {', '.join(found) or 'equal'}")
            if found:
                different[name] = found
    text = f"{n_cases} cases, {n_models} models: "
    if not different:
        return f"{text}all are equal."
    rows = [[name, *cells] for name, found in different.items() for cells in found.items()]
    head = ["case", "difference", "first step"]
    return f"{text}{len(different)} cases differ.\n\n{table(head, rows)}"


def first_differences(
    old: Sequence[Digests], new: Sequence[Digests], steps: Sequence[str]
) -> dict[str, str]:
    """Parts of the models of a case that differ, and the first step at which each does.

    Examples
    --------
    >>> old = [{"trees": "a", "rows": "b"}, {"trees": "c", "rows": "d"}]
    >>> new = [{"trees": "a", "rows": "b"}, {"trees": "c", "rows": "e"}]
    >>> first_differences(old, new, ["remove 20"])
    {'rows': '1: remove 20'}
    """
    result: dict[str, str] = {}
    for i, (step, one, two) in enumerate(zip(("fit", *steps), old, new, strict=True)):
        for part in one:
            if one[part] != two[part]:
                result.setdefault(part, f"{i}: {step}")
    return result
