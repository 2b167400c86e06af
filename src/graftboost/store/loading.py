"""Read the newest state of a store, and remove files that are no longer needed."""

from __future__ import annotations

import re
from pathlib import Path

from graftboost.persistence import atomic_file
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store.lock import Lock
from graftboost.store.state import State, newest_generation

# A reader starts again if a writer removed the files it was reading, at most this often.
READ_TRIES = 20
OURS = re.compile(r"\.?(model|journal)-\d{6,18}\.graft(\..*\.tmp)?|\.receipts\.jsonl\..*\.tmp")


def load_state(path: Path, lock: Lock | None) -> State:
    """Read the newest model and replay the changes since it was written.

    Parameters
    ----------
    path : Path
        The store's directory.
    lock : Lock or None
        The lock of a writer, who also completes the receipts; None for a reader.

    Returns
    -------
    State
        What the store holds.
    """
    if lock is not None:
        # The previous writer may have stopped before the names of its files were on the disk.
        atomic_file.flush_directory(path)
    for _ in range(READ_TRIES):
        generation = newest_generation(path)
        if generation is None:
            break
        try:
            state = State.read(path, generation)
        except (FileNotFoundError, InvalidFileError):
            # A writer may have written a newer model meanwhile, and removed this one.
            if newest_generation(path) == generation:
                raise
            continue
        if newest_generation(path) == generation:
            if lock is not None and state.unlogged:
                with lock.writing():
                    state.log_missing()
            return state
    raise FileNotFoundError(f"The model in {path} is gone. Restore it from a backup.")


def remove_left_overs(state: State) -> bool:
    """Remove the files of earlier generations and of interrupted writers.

    Returns
    -------
    bool
        Whether there were any.
    """
    keep = {state.model_path, state.journal.path}
    found = [p for p in state.path.iterdir() if p not in keep and OURS.fullmatch(p.name)]
    for path in found:
        atomic_file.remove(path)
    return bool(found)
