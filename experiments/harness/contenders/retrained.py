"""Libraries that are retrained on all rows, which is the usual practice."""

from __future__ import annotations

from benchmarks.libraries import LIBRARIES, OURS
from experiments.harness.contenders.peer import Peer
from experiments.harness.paper_library import PAPER_LIBRARY


class Retrained(Peer):
    """Retrained at each update."""

    in_place = False

    def _follow(self) -> None:
        self.retrain()


def retrained(name: str) -> type[Retrained]:
    """The contender that retrains a library."""
    library = PAPER_LIBRARY if name == OURS else LIBRARIES[name]
    members = {
        "name": name,
        "title": f"{library.title}, retrained",
        "library": library,
        "__doc__": f"{library.title}, retrained at each update.",
        "__module__": __name__,
    }
    return type(f"Retrained{type(library).__name__}", (Retrained,), members)
