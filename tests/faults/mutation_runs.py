"""Use many mutations of a file, in processes of their own, and count how that ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from .isolation import isolated_each
from .tally import Tally

BATCH = 100  # mutations in one process
SECONDS = 60.0  # until one counts as hung; sanitizers are slow


def check_mutations(
    kind: str, n_mutations: int, use: Callable[[int], str], also: Sequence[int] = ()
) -> None:
    """Check that `use` returns for every seed, and refuses at least 30% of them, but not all.

    It returns "used" for a mutation that it does not refuse. `also` are further seeds.
    """

    def use_quietly(seed: int) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return use(seed)

    seeds = [*range(n_mutations), *also]
    tally = Tally("files are made up")
    endings = isolated_each(use_quietly, seeds, batch=BATCH, seconds=SECONDS)
    for seed, ending in zip(seeds, endings, strict=True):
        tally.add(not ending.death, ending.death or ending.value, f"{kind}, seed {seed}")
    tally.check()
    n_refused = len(seeds) - tally.held["used"]
    assert 0.3 * len(seeds) < n_refused < len(seeds)
