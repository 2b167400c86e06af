"""The state of a store: the model of a file with the changes of the journal applied."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.memory import stats_bytes
from graftboost.estimators.report import UpdateReport
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_request import RegrowRequest, Rule, UpdateRequest
from graftboost.input.row_ids import NO_IDS
from graftboost.persistence import atomic_file, file_format, model_file
from graftboost.persistence.file_format import Container, InvalidFileError
from graftboost.persistence.model_file import Saved
from graftboost.persistence.pieces import Pieces
from graftboost.store.attributes import ARRAY, Attributes
from graftboost.store.digest import digest
from graftboost.store.errors import StoreError
from graftboost.store.journal import Journal
from graftboost.store.receipt_log import NAME, ReceiptLog
from graftboost.store.receipts import HASH, Receipt
from graftboost.store.record_checks import check_parameters, check_record
from graftboost.store.records import Record

FORMAT = 1
MODEL = re.compile(r"model-(\d{6,18})\.graft")
LATER_IDS = "store_later_ids"


@dataclass
class State:
    """A model, its attributes, and its receipts.

    Attributes
    ----------
    path : Path
        The store's directory.
    generation : int
        The number in the names of its files.
    saved : Saved
        The model.
    attributes : Attributes
        The attributes of its rows.
    later : ndarray of int64
        Ids of the rows that were added after the bin edges were computed, ascending.
    notes : dict
        Further information from the creator of the store.
    number_written, hash_written : int, str
        Number and hash of the last receipt when the model was written.
    digest : str
        The fingerprint of the model.
    log : ReceiptLog
        The receipts.
    n_changes : int
        The number of changes in the `journal`.
    last_hash : str
        The hash of the last receipt.
    unlogged : list of Receipt
        Receipts of changes that are in the journal but not in the log, because a writer was
        interrupted between the two.
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
    log: ReceiptLog
    n_changes: int = 0
    unlogged: list[Receipt] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.journal = Journal(journal_path(self.path, self.generation))
        self.last_hash = self.hash_written

    # --- files ------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, generation: int) -> State:
        """Read a model and replay the changes since it was written.

        Raises
        ------
        InvalidFileError
            If a file is damaged, or a change that was made is lost.
        """
        found = file_format.load(model_path(path, generation), links=False)
        header = _store_header(found)
        saved = model_file.restore(found, verify_state=False)
        found.verify(name for name in found.arrays if name == LATER_IDS or name.startswith(ARRAY))
        try:
            check_parameters(saved.parameters)
            state = cls._described(path, generation, saved, header, found.arrays)
        except RecursionError as error:
            raise found.invalid("its store header is nested too deeply") from error
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise found.invalid(f"its store header is not valid ({error})") from error
        state._replay()
        if digest(saved.engine_model) != state.digest:
            raise StoreError(
                f"Replaying the changes in {state.journal.path} does not give the recorded model. "
                "The store was probably written by another version of graftboost. Open and compact "
                "it with that version."
            )
        return state

    @classmethod
    def _described(
        cls,
        path: Path,
        generation: int,
        saved: Saved,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> State:
        """Return the state for a header, after checking all of it."""
        attributes = Attributes.restore(header["attributes"], arrays)
        if attributes and len(attributes.ids) != saved.engine_model.n_rows:
            raise ValueError("the attributes do not match the rows")
        later = np.array(arrays[LATER_IDS])
        if later.dtype != np.int64 or (later[1:] <= later[:-1]).any():
            raise ValueError(f"{LATER_IDS} are not ascending ids")
        number, (begin, end) = header["number"], header["receipt_at"]
        if not all(type(value) is int for value in (number, begin, end)):
            raise ValueError("the last receipt has no number or no offset")
        if number < 0 or not 0 <= begin < end < 2**63:
            raise ValueError("the number or the offset of the last receipt is not valid")
        for name in ("receipt", "digest"):
            if not isinstance(header[name], str) or not HASH.fullmatch(header[name]):
                raise ValueError(f"{name} is not a hash")
        if not isinstance(header["notes"], dict):
            raise ValueError("notes is not an object")
        return cls(
            path,
            generation,
            saved,
            attributes,
            later,
            header["notes"],
            number,
            header["receipt"],
            header["digest"],
            ReceiptLog(path / NAME, begin, end),
        )

    def check_model(self) -> None:
        """Have the engine check the state of all rows before its first use.

        Later calls return immediately.

        Raises
        ------
        InvalidFileError
            If the state is not valid.
        """
        try:
            self.saved.engine_model.held_rows(NO_IDS)
        except ValueError as error:
            raise file_format.damaged(str(self.model_path), str(error)) from error

    def write(self, generation: int, permissions: atomic_file.Permissions) -> None:
        """Write the current model; raises what `atomic_file.replacing` raises."""
        kinds, arrays = self.attributes.contents()
        header = {
            "format": FORMAT,
            "number": self.number,
            "receipt": self.last_hash,
            "receipt_at": [self.log.begin, self.log.size],
            "digest": self.digest,
            "attributes": kinds,
            "notes": self.notes,
        }
        model_file.save(
            model_path(self.path, generation),
            self.saved,
            state=True,
            extra=({"store": header}, {LATER_IDS: Pieces.of(self.later), **arrays}),
            permissions=permissions,
        )

    @property
    def model_path(self) -> Path:
        """The model's file."""
        return model_path(self.path, self.generation)

    # --- changes ----------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The number of the last change."""
        return self.number_written + self.n_changes

    def _replay(self) -> None:
        """Replay the changes in the journal."""
        # The end of the receipts is read first: all changes up to it are in the journal.
        made = self.log.read_on(self.number, self.last_hash, self.log.end())
        for found in self.journal.read():
            self.check_model()
            record = Record.restore(found)
            logged = None if self.unlogged else next(made, None)
            self._redo(record, logged, found)
        lost = next(made, None)
        if lost is not None:
            raise InvalidFileError(
                f"Change {lost.number} of {self.path} was made according to {NAME}, but is lost. "
                f"{self.journal.flaw}"
            )

    def _redo(self, record: Record, logged: Receipt | None, found: Container) -> None:
        receipt = record.receipt
        what = f"change {receipt.number}"
        if receipt.number != self.number + 1 or receipt.previous != self.last_hash:
            raise found.invalid(f"{what} was found where {self.number + 1} was expected")
        if logged is not None and logged != receipt:
            raise found.invalid(f"{what} differs from its receipt in {NAME}")
        if receipt.before != self.digest:
            raise found.invalid(f"{what} belongs to another model")
        try:
            check_record(record, self.saved, self.attributes)
            self.saved.parameters.update(record.parameters)
            if record.regrowing is not None:
                self.regrow(record.regrowing)
            elif record.change is None:
                self.train(receipt.action)
            else:
                self.apply(record.change)
                self.note(record.change, record.attributes)
        except (ValueError, TypeError, OverflowError) as error:
            raise found.invalid(f"{what} cannot be applied: {error}") from error
        if receipt.rows_deferred != self.saved.engine_model.rows_deferred:
            raise found.invalid(f"{what} leaves other rows to regrow than its receipt says")
        self._add(record)
        if logged is None:
            self.unlogged.append(receipt)

    def apply(
        self, change: UpdateRequest, *, argument: str = "row_ids", start: float | None = None
    ) -> UpdateReport:
        """Apply an update; if this raises, the model is unchanged."""
        saved = self.saved
        saved.engine_model.histogram_memory = stats_bytes(saved.parameters["stats_memory"])
        # Added before the update, because concurrent predictions look classes up by their number.
        classes = {} if change.classes is None else {len(change.classes): change.classes}
        unseen = classes.keys() - saved.classes.keys()
        saved.classes.update(classes)
        try:
            return change.apply(saved.engine_model, self.n_threads, argument=argument, start=start)
        except BaseException:
            # If the engine has completed the update before Ctrl-C, its classes are kept.
            for number in unseen - {saved.n_classes}:
                del saved.classes[number]
            raise

    def regrow(self, request: RegrowRequest) -> UpdateReport:
        """Regrow nodes for rows that were only booked; if this raises, the model is unchanged."""
        saved = self.saved
        saved.engine_model.histogram_memory = stats_bytes(saved.parameters["stats_memory"])
        return request.apply(saved.engine_model, self.n_threads)

    def commit(self, record: Record) -> None:
        """Write a change that was applied to the model: first the journal, then the receipt.

        Raises
        ------
        atomic_file.UncertainError
            If it is not known whether the change is written. After any other error it is not,
            also after a power cut.
        """
        journal_size, log_begin, log_size = self.journal.size, self.log.begin, self.log.size
        try:
            self.journal.append(*record.contents(), atomic_file.Permissions.of(self.model_path))
            self.log.append(record.receipt)
        except atomic_file.UncertainError:
            raise
        except BaseException:
            # The receipt is removed first: a receipt without its change would look like damage.
            self.log.take_back(log_begin, log_size)
            self.journal.take_back(journal_size)
            raise
        self._add(record)

    def log_missing(self) -> None:
        """Write the missing receipts of changes in the journal; raises what `commit` raises.

        The journal must be on the disk, because a receipt without its change would look like
        damage.
        """
        while self.unlogged:
            self.log.append(self.unlogged[0])
            del self.unlogged[0]

    def _add(self, record: Record) -> None:
        """Count a change that is in the journal."""
        self.n_changes += 1
        self.last_hash = record.receipt.hash
        self.digest = record.receipt.after
        self.seconds += record.seconds

    def note(self, change: UpdateRequest, attributes: Mapping[str, NDArray[Any]]) -> None:
        """Apply a change to the attributes and ids that are kept beside the engine model."""
        self.attributes.remove(change.removed)
        self.later = np.setdiff1d(self.later, change.removed)
        if change.added is not None:
            if self.attributes:
                self.attributes.add(change.added.ids, attributes)
            self.later = np.union1d(self.later, change.added.ids)
            self.saved.next_id = max(self.saved.next_id, int(change.added.ids.max()) + 1)

    def train(self, action: str) -> None:
        """Refit or refresh the model."""
        if action == "refit":
            self.saved.engine_model.refit(self.n_threads)
        else:
            self.saved.engine_model.refresh(self.n_threads)

    @property
    def rule(self) -> Rule:
        """The rule by which updates select the nodes to regrow."""
        return Rule.of(self.saved.parameters)

    def removal(self, removed: NDArray[np.int64]) -> UpdateRequest:
        """Return the request to remove these rows."""
        classes = self.saved.classes.get(self.saved.n_classes)
        relabel = [] if classes is None else list(range(len(classes)))
        return UpdateRequest(self.rule, removed, None, classes, relabel)

    def edges(self, removed: NDArray[np.int64]) -> str:
        """Return whether the bin edges depend on the removed rows, as receipts state it."""
        if not len(removed):
            return ""
        if _all_edges_given(self.saved):
            return "supplied"
        return "computed before" if np.isin(removed, self.later).all() else "computed with"

    @property
    def n_threads(self) -> int:
        """The number of threads for updates."""
        return thread_count(self.saved.parameters["n_jobs"])


def model_path(path: Path, generation: int) -> Path:
    """Return the path of a model file."""
    return path / f"model-{generation:06}.graft"


def journal_path(path: Path, generation: int) -> Path:
    """Return the path of the journal for that model."""
    return path / f"journal-{generation:06}.graft"


def newest_generation(path: Path) -> int | None:
    """Return the generation of the newest model in a directory; None if there is none."""
    try:
        found = [MODEL.fullmatch(name) for name in os.listdir(path)]  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return None
    return max((int(match[1]) for match in found if match), default=None)


def _store_header(found: Container) -> dict[str, Any]:
    header = found.header.get("store")
    if not isinstance(header, dict):
        raise InvalidFileError(
            f"{found.source} is a saved model that does not belong to a store. Use graftboost.load."
        )
    if header.get("format") != FORMAT:
        raise InvalidFileError(
            f"{found.source} belongs to a store of format {header.get('format')!r}, but this "
            f"graftboost supports only format {FORMAT}. Install the graftboost that wrote it, or a "
            "newer one."
        )
    return header


def _all_edges_given(saved: Saved) -> bool:
    """Tell whether the bin edges of all columns were supplied."""
    given = saved.parameters.get("bin_edges")
    if given is None or saved.categories:  # categories depend on the rows
        return False
    if not isinstance(given, Mapping) and len(given) != saved.engine_model.bins.n_features:
        return False  # set after the fit
    for feature in range(saved.engine_model.bins.n_features):
        name = None if saved.feature_names is None else saved.feature_names[feature]
        if isinstance(given, Mapping):
            edges = given.get(feature) if feature in given else given.get(name)
        else:
            edges = given[feature]
        if edges is None:
            return False
    return True
