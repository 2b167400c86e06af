"""Recovery: before a writer starts, flush what the previous writer has left.

The previous writer may have been killed before its last change was on the disk, or the disk may
have reported a failure. Readers see that change nevertheless, because the system serves it from
memory.
"""

from __future__ import annotations

import os
from pathlib import Path

from graftboost.persistence import atomic_file
from graftboost.persistence.file_format import open_regular
from graftboost.store.lock import Lock
from graftboost.store.receipt_log import NAME
from graftboost.store.state import journal_path, newest_generation


def secure(path: Path, lock: Lock) -> None:
    """Flush the journal and the receipts of a store to the disk.

    Parameters
    ----------
    path : Path
        The store's directory.
    lock : Lock
        Its lock, which is settled afterwards.

    Raises
    ------
    OSError
        If the disk fails. The files and the state of the lock are unchanged.
    InvalidFileError
        If one of them is not a regular file.
    """
    generation = newest_generation(path)
    files = [path / NAME] if generation is None else [journal_path(path, generation), path / NAME]
    for file in files:
        try:
            number = open_regular(file)
        except FileNotFoundError:  # no changes yet; other missing files are reported later
            continue
        try:
            # An fsync does not write again what an earlier one failed to write, but a copy does.
            if lock.is_unsettled:
                atomic_file.rewrite(file, number)
            else:
                atomic_file.flush(number)
        finally:
            os.close(number)
    if lock.is_unsettled:
        lock.settle()
