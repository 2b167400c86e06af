"""A change as it is written to the journal, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.changes import AddedRows, Change, Rule
from graftboost.container import Container, Pieces
from graftboost.plain import decode, encode
from graftboost.sparse import AnyTable, csr, is_sparse
from graftboost.store.receipts import Receipt

KIND = "change"


@dataclass(frozen=True)
class Record:
    """One change of a store.

    Attributes
    ----------
    receipt : Receipt
        What it did; its action says what it was.
    change : Change or None
        The rows that came and went, if it was an update.
    attributes : mapping of str to ndarray
        What is kept beside the rows that came.
    seconds : float
        How long it took, which is how long it takes to do it again.
    """

    receipt: Receipt
    change: Change | None = None
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    seconds: float = 0.0

    def contents(self) -> tuple[dict[str, Any], dict[str, Pieces]]:
        """Return header and arrays of its container."""
        header: dict[str, Any] = {
            "kind": KIND,
            "receipt": asdict(self.receipt),
            "seconds": self.seconds,
        }
        if self.change is None:
            return header, {}
        change, added = self.change, self.change.added
        header |= {
            "rule": encode(asdict(change.rule), "the rule"),
            "classes": encode(change.classes, "classes_"),
            "relabel": change.relabel,
            "attributes": {
                name: encode(values, f"the attribute {name}")
                for name, values in self.attributes.items()
            },
        }
        arrays = {"removed": Pieces.of(change.removed)}
        if added is not None:
            header["n_features"] = added.X.shape[1]
            arrays |= _table_arrays(added.X)
            arrays |= {"added_ids": Pieces.of(added.ids), "added_y": Pieces.of(added.y)}
            if added.weight is not None:
                arrays["added_weight"] = Pieces.of(added.weight)
        return header, arrays

    @classmethod
    def restore(cls, found: Container) -> Record:
        """Return the record that a container holds; raises InvalidFileError if it holds none."""
        try:
            return cls._restore(found.header, found.arrays)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise found.invalid(f"it holds a change that is none ({error})") from error

    @classmethod
    def _restore(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Record:
        if header["kind"] != KIND:
            raise ValueError(f"it is {header['kind']!r}")
        receipt = Receipt.from_json(header["receipt"])
        seconds = float(header["seconds"])
        if "rule" not in header:
            return cls(receipt, seconds=seconds)
        added = None
        if "added_ids" in arrays:
            ids = arrays["added_ids"]
            added = AddedRows(
                _table(arrays, len(ids), header["n_features"]),
                arrays["added_y"],
                arrays.get("added_weight"),
                ids,
            )
        classes = decode(header["classes"])
        change = Change(
            Rule(**decode(header["rule"])),
            arrays["removed"],
            added,
            None if classes is None else np.asarray(classes),
            header["relabel"],
        )
        attributes = {name: decode(values) for name, values in header["attributes"].items()}
        return cls(receipt, change, attributes, seconds)


def _table_arrays(X: AnyTable) -> dict[str, Pieces]:
    if not is_sparse(X):
        return {"added_X": Pieces.of(X)}
    return {
        "added_X": Pieces.of(X.data),
        "added_columns": Pieces.of(X.indices),
        "added_begin": Pieces.of(X.indptr),
    }


def _table(arrays: Mapping[str, NDArray[Any]], n_rows: int, n_features: int) -> AnyTable:
    if "added_begin" not in arrays:
        return arrays["added_X"].reshape(n_rows, n_features)
    cells = arrays["added_X"], arrays["added_columns"], arrays["added_begin"]
    return csr(cells, (n_rows, n_features))
