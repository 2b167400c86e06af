"""What a store holds at a moment: a file's model, brought up to date by the journal beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost import container, saving
from graftboost.changes import Change, Rule
from graftboost.container import Container, InvalidFileError, Pieces
from graftboost.memory import stats_bytes
from graftboost.report import UpdateReport
from graftboost.saving import Saved
from graftboost.store.attributes import ARRAY, Attributes
from graftboost.store.digest import digest
from graftboost.store.journal import Journal
from graftboost.store.receipts import Receipt
from graftboost.store.records import Record
from graftboost.threads import thread_count

FORMAT = 1
MODEL = re.compile(r"model-(\d{6,})\.graft")
LATER_IDS = "store_later_ids"


class StoreError(RuntimeError):
    """A store is not what it should be, or cannot do what it was asked for."""


@dataclass
class State:
    """A model and what is kept beside it.

    Attributes
    ----------
    path : Path
        The store's directory.
    generation : int
        The number in the names of its files.
    saved : Saved
        The model.
    attributes : Attributes
        The columns beside its rows.
    later : ndarray of int64
        Ids of the rows held that came after the bins were fitted, ascending.
    notes : dict
        What else the maker of the store wanted remembered.
    number_written, hash_written : int, str
        Number and hash of the last receipt when the model was written.
    digest : str
        The fingerprint of the model.
    recent : list of Receipt
        Receipts of the changes since, which are in the `journal`.
    seconds : float
        How long the changes in the journal took.
    """

    path: Path
    generation: int
    saved: Saved
    attributes: Attributes
    later: NDArray[np.int64]
    notes: dict[str, Any]
    number_written: int
    hash_written: str
    digest: str
    recent: list[Receipt] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.journal = Journal(journal_path(self.path, self.generation))

    # --- files ------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, generation: int) -> State:
        """Read a model and do the changes since it was written again."""
        found = container.load(model_path(path, generation))
        header = _store_header(found)
        saved = saving.restore(found, trusted=True)
        found.verify(name for name in found.arrays if name == LATER_IDS or name.startswith(ARRAY))
        try:
            state = cls(
                path,
                generation,
                saved,
                Attributes.restore(header["attributes"], found.arrays),
                np.array(found.arrays[LATER_IDS]),
                dict(header["notes"]),
                int(header["number"]),
                str(header["receipt"]),
                str(header["digest"]),
            )
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise found.invalid(f"what it says of the store is wrong ({error!r})") from error
        for change in state.journal.read():
            state._redo(Record.restore(change))
        if digest(saved.forest) != state.digest:
            raise StoreError(
                f"The changes in {state.journal.path} do not lead to the model that they led to. "
                "Was the store written by another version of graftboost? Open it with that one, "
                "and compact it there."
            )
        return state

    def write(self, generation: int) -> None:
        """Write the model as it is now."""
        kinds, arrays = self.attributes.contents()
        header = {
            "format": FORMAT,
            "number": self.next_number - 1,
            "receipt": self.last_hash,
            "digest": self.digest,
            "attributes": kinds,
            "notes": self.notes,
        }
        saving.save(
            model_path(self.path, generation),
            self.saved,
            state=True,
            extra=({"store": header}, {LATER_IDS: Pieces.of(self.later), **arrays}),
        )

    @property
    def model_path(self) -> Path:
        """The model's file."""
        return model_path(self.path, self.generation)

    # --- changes ----------------------------------------------------------------------------------

    @property
    def next_number(self) -> int:
        """The number of the next change."""
        return self.number_written + 1 + len(self.recent)

    @property
    def last_hash(self) -> str:
        """The hash of the last receipt."""
        return self.recent[-1].hash if self.recent else self.hash_written

    def _redo(self, record: Record) -> None:
        receipt = record.receipt
        if receipt.number != self.next_number or receipt.previous != self.last_hash:
            raise StoreError(
                f"{self.journal.path} does not follow from the model beside it: it has change "
                f"{receipt.number} where {self.next_number} was expected."
            )
        if record.change is None:
            self.train(receipt.action)
        else:
            self.apply(record.change)
            self.note(record.change, record.attributes)
        self.add(record)

    def apply(
        self, change: Change, *, argument: str = "row_ids", start: float | None = None
    ) -> UpdateReport:
        """Change the model."""
        # Before the engine has more classes: whoever predicts meanwhile looks them up by number.
        if change.classes is not None:
            self.saved.classes[len(change.classes)] = change.classes
        self.saved.forest.stats_memory = stats_bytes(self.saved.parameters.get("stats_memory"))
        return change.apply(self.saved.forest, self.n_threads, argument=argument, start=start)

    def append(self, record: Record) -> None:
        """Write a change that was made to the journal."""
        self.journal.append(*record.contents())
        self.add(record)

    def add(self, record: Record) -> None:
        """Take note of a change that is in the journal."""
        self.recent.append(record.receipt)
        self.digest = record.receipt.after
        self.seconds += record.seconds

    def note(self, change: Change, attributes: Mapping[str, NDArray[Any]]) -> None:
        """Bring up to date what is kept besides the forest."""
        self.attributes.remove(change.removed)
        self.later = np.setdiff1d(self.later, change.removed)
        if change.added is not None:
            if self.attributes:
                self.attributes.add(change.added.ids, attributes)
            self.later = np.union1d(self.later, change.added.ids)
            self.saved.next_id = max(self.saved.next_id, int(change.added.ids.max()) + 1)

    def train(self, action: str) -> None:
        """Refit, or refresh."""
        if action not in ("refit", "refresh"):
            raise StoreError(f"{self.journal.path} holds a change of an unknown kind, {action!r}.")
        getattr(self.saved.forest, action)(self.n_threads)

    def removal(self, removed: NDArray[np.int64]) -> Change:
        """Return the change that removes these rows."""
        p, classes = self.saved.parameters, self.saved.classes.get(self.saved.n_classes)
        rule = Rule.of(p["tolerance_rule"], p["tolerance"], p["split_sample"], p["max_bins"])
        relabel = [] if classes is None else list(range(len(classes)))
        return Change(rule, removed, None, classes, relabel)

    def edges(self, removed: NDArray[np.int64]) -> str:
        """Tell what rows that go leave behind in the bins."""
        if not len(removed):
            return ""
        if _all_edges_given(self.saved):
            return "given"
        return "fitted without" if np.isin(removed, self.later).all() else "fitted with"

    @property
    def n_threads(self) -> int:
        """Threads that the model may use."""
        n_jobs = self.saved.parameters.get("n_jobs")
        return thread_count(n_jobs if isinstance(n_jobs, int) else None)


def model_path(path: Path, generation: int) -> Path:
    """Return where a model is."""
    return path / f"model-{generation:06}.graft"


def journal_path(path: Path, generation: int) -> Path:
    """Return where the changes since that model are."""
    return path / f"journal-{generation:06}.graft"


def newest_generation(path: Path) -> int | None:
    """Return the number of the newest model in a directory; None if there is none."""
    try:
        found = [MODEL.fullmatch(name) for name in os.listdir(path)]  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return None
    return max((int(match[1]) for match in found if match), default=None)


def _store_header(found: Container) -> dict[str, Any]:
    header = found.header.get("store")
    if not isinstance(header, dict):
        raise InvalidFileError(f"{found.source} is not a store's: it was saved by itself.")
    if header.get("format") != FORMAT:
        raise InvalidFileError(
            f"{found.source} is of a store in format {header.get('format')!r}, and this graftboost "
            f"knows format {FORMAT}. Install the graftboost that wrote it, or a newer one."
        )
    return header


def _all_edges_given(saved: Saved) -> bool:
    """Tell whether no row had a say in the bins of any column."""
    given = saved.parameters.get("bin_edges")
    if given is None or saved.categories:  # their categories are those that occurred
        return False
    for feature in range(saved.forest.bins.n_features):
        name = None if saved.feature_names is None else saved.feature_names[feature]
        if isinstance(given, Mapping):
            edges = given.get(feature) if feature in given else given.get(name)
        else:
            edges = given[feature]
        if edges is None:
            return False
    return True
