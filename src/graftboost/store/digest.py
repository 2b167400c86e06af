"""The digest of a model: equal digests mean equal models."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from graftboost._engine import EngineModel

# These arrays depend on the history of a model (validation) or on the rows it was fitted on
# (storage of codes) and are not part of its current state.
LEFT_OUT = (
    "validation_losses",
    "bin_common_codes",
    "bin_common_shares",
    "bin_has_missing",
    "bin_bundles",
)


def digest(engine_model: EngineModel) -> str:
    """Return a fingerprint of the bins, the trees and the row ids of a model.

    The sums, gradients and leaves of rows are determined by these, as `check_state` verifies, so
    they are not read and the digest is fast to compute. It does not depend on the order of rows: a
    refitted model has the digest of a model fitted with the same bins on the same rows.

    Parameters
    ----------
    engine_model : EngineModel
        The engine model.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    sha = hashlib.sha256()
    summary = engine_model.summary(False, False)
    sha.update(json.dumps(summary, sort_keys=True).encode())
    for name, _, pieces in engine_model.arrays(False, False):
        if name in LEFT_OUT:
            continue
        sha.update(f"{name} {sum(map(len, pieces))} ".encode())
        for piece in pieces:
            sha.update(memoryview(piece).cast("B") if len(piece) else b"")
    sha.update(_of_set(engine_model.row_ids))
    return sha.hexdigest()


def _of_set(ids: NDArray[np.int64]) -> bytes:
    """Return a fingerprint of a set of numbers: the sums of two hashes of each number."""
    values = ids.astype(np.uint64)
    sums = [len(ids), *(int(_mixed(values ^ np.uint64(key)).sum()) for key in KEYS)]
    return b"".join(number.to_bytes(8, "little") for number in sums)


KEYS = (0x243F6A8885A308D3, 0x13198A2E03707344)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
