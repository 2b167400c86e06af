"""Whether both builds make the same models, and where they first differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.builds.build import BuildError, Builds, workers_of
from benchmarks.builds.cases import CASES
from benchmarks.markdown import table


def compare_models(
    builds: Builds, say: Callable[[str], None], names: Iterable[str] = tuple(CASES)
) -> str:
    """Digests of cases in both builds: how many there are, and a table of those that differ."""
    n_cases = n_digests = 0
    different = []
    with workers_of(builds) as workers:
        for name in names:
            for worker in workers:  # at the same time, because no time is measured
                worker.send("digests", case=name)
            digests, failures = [], []
            for worker in workers:
                try:
                    digests.append(worker.receive())
                except BuildError as error:
                    failures.append(str(error))
            if failures:
                found: str | None = "; ".join(failures)
            else:
                old, new = digests
                found = first_difference(old, new, CASES[name].steps)
                n_digests += len(old)
            n_cases += 1
            say(f"{name}  {found or 'equal'}")
            if found:
                different.append([name, found])
    text = f"{n_cases} cases, {n_digests} digests: "
    if not different:
        return f"{text}all are equal."
    return (
        f"{text}{len(different)} cases differ.\n\n{table(['case', 'first difference'], different)}"
    )


def first_difference(old: Sequence[str], new: Sequence[str], steps: Sequence[str]) -> str | None:
    """First step at which the digests of a case differ, None if all are equal.

    Examples
    --------
    >>> first_difference(["a", "b", "c"], ["a", "b", "d"], ["remove 1", "add 30"])
    'step 2: add 30'
    """
    for i, (step, *digests) in enumerate(zip(("fit", *steps), old, new, strict=True)):
        if digests[0] != digests[1]:
            return f"step {i}: {step}"
    return None
