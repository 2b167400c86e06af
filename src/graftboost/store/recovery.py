"""What a writer does before anything else: have on the disk what the writer before left.

That one may have been killed before its last change was on the disk, or may have been told by the
disk that it is not. Readers see that change all the same: the system serves them from memory.
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
    """Have the journal and the receipts of a store reach the disk.

    Parameters
    ----------
    path : Path
        The store's directory.
    lock : Lock
        Its lock. It is settled afterwards.

    Raises
    ------
    OSError
        If the disk fails. The files hold what they held, and the lock is as unsettled as it was.
    InvalidFileError
        If one of them is not a regular file.
    """
    generation = newest_generation(path)
    files = [path / NAME] if generation is None else [journal_path(path, generation), path / NAME]
    for file in files:
        try:
            number = open_regular(file)
        except FileNotFoundError:  # of a journal without changes; else reading the store tells
            continue
        try:
            # An fsync does not bring back what an earlier one failed to write, but a copy does.
            if lock.is_unsettled:
                atomic_file.rewrite(file, number)
            else:
                atomic_file.flush(number)
        finally:
            os.close(number)
    if lock.is_unsettled:
        lock.settle()
