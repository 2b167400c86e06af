"""Records: changes as they are written to the journal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.update_request import AddedRows, RegrowRequest, Rule, UpdateRequest
from graftboost.input.sparse import AnyTable, csr, is_sparse
from graftboost.persistence.file_format import Container
from graftboost.persistence.json_values import decode, encode
from graftboost.persistence.pieces import Pieces
from graftboost.store.receipts import Receipt

KIND = "change"
HEADER = {"kind", "receipt", "parameters", "seconds"}
HEADER_OF_ROWS = {"rule", "classes", "relabel", "attributes", "n_features"}
HEADER_OF_REGROWING = {"rule", "work"}

# The arrays of a change, and the types they may have.
Types = dict[str, tuple[str, ...]]
REMOVED: Types = {"removed": ("int64",)}
ADDED: Types = {
    "added_ids": ("int64",),
    "added_y": ("float64",),
    "added_X": ("float32", "float64"),
}
WEIGHT: Types = {"added_weight": ("float64",)}
SPARSE: Types = {"added_columns": ("int32", "int64"), "added_begin": ("int32", "int64")}


@dataclass(frozen=True)
class Record:
    """One change of a store.

    Attributes
    ----------
    receipt : Receipt
        The receipt of the change, with its action.
    parameters : mapping of str to object
        The values of `UPDATE_PARAMETERS`, which updates read, at the time of the change.
    change : UpdateRequest or None
        The rows added and removed, for an update.
    attributes : mapping of str to ndarray
        The attributes of the added rows.
    regrowing : RegrowRequest or None
        What was regrown, for the action "regrow".
    seconds : float
        How long the change took, which is about how long a replay takes.
    """

    receipt: Receipt
    parameters: Mapping[str, Any]
    change: UpdateRequest | None = None
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    regrowing: RegrowRequest | None = None
    seconds: float = 0.0

    def contents(self) -> tuple[dict[str, Any], dict[str, Pieces]]:
        """Return the header and the arrays of the record."""
        header: dict[str, Any] = {
            "kind": KIND,
            "receipt": asdict(self.receipt),
            "parameters": {
                name: encode(value, f"the parameter {name}")
                for name, value in self.parameters.items()
            },
            "seconds": self.seconds,
        }
        if self.regrowing is not None:
            header |= {
                "rule": encode(asdict(self.regrowing.rule), "the rule"),
                "work": encode(self.regrowing.work, "work"),
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
            "n_features": None if added is None else added.X.shape[1],
        }
        arrays = {"removed": Pieces.of(change.removed)}
        if added is not None:
            arrays |= _table_arrays(added.X)
            arrays |= {"added_ids": Pieces.of(added.ids), "added_y": Pieces.of(added.y)}
            if added.weight is not None:
                arrays["added_weight"] = Pieces.of(added.weight)
        return header, arrays

    @classmethod
    def restore(cls, found: Container) -> Record:
        """Return the record of a container.

        Its form is checked: the type and length of every array, and the cells of a sparse table.
        `graftboost.store.record_checks` checks whether it can be applied to a model.

        Raises
        ------
        InvalidFileError
            If the container is not a valid record.
        """
        try:
            return cls._restore(found.header, found.arrays)
        except RecursionError as error:
            raise found.invalid("a change in it is nested too deeply") from error
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            # The message does not quote values, which may be personal data.
            what = str(error) if type(error) is FormError else "its header has an invalid value"
            raise found.invalid(f"a change in it cannot be read ({what})") from error

    @classmethod
    def _restore(cls, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Record:
        if header.get("kind") != KIND:
            raise FormError("it is not a change")
        try:
            receipt = Receipt.from_json(header["receipt"])
        except ValueError as error:
            raise FormError(f"its receipt is not valid: {error}") from error
        if receipt.hash != receipt.computed_hash():
            raise FormError("its receipt was modified")
        seconds = header["seconds"]
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise FormError("its time is not a number of seconds")
        parameters = {name: decode(value) for name, value in header["parameters"].items()}
        further = {"update": HEADER_OF_ROWS, "regrow": HEADER_OF_REGROWING}
        if set(header) != HEADER | further.get(receipt.action, set()):
            raise FormError("its header does not have the fields of such a change")
        if receipt.action != "update":
            if arrays:
                raise FormError("it has rows but is not an update")
            regrowing = None
            if receipt.action == "regrow":
                regrowing = RegrowRequest(_rule(decode(header["rule"])), decode(header["work"]))
            return cls(receipt, parameters, regrowing=regrowing, seconds=seconds)
        classes, relabel = decode(header["classes"]), header["relabel"]
        if classes is not None and not (isinstance(classes, np.ndarray) and classes.ndim == 1):
            raise FormError("its classes are not a list")
        if not isinstance(relabel, list) or not all(type(code) is int for code in relabel):
            raise FormError("relabel is not a list of class codes")
        change = UpdateRequest(
            _rule(decode(header["rule"])),
            arrays["removed"],
            _added_rows(header["n_features"], arrays),
            classes,
            relabel,
        )
        attributes = {name: decode(values) for name, values in header["attributes"].items()}
        return cls(receipt, parameters, change, attributes, seconds=seconds)


class FormError(ValueError):
    """A record has valid checksums but not the form of a change."""


def _rule(content: Any) -> Rule:
    if not isinstance(content, dict) or set(content) != {field.name for field in fields(Rule)}:
        raise FormError("its rule is not valid")
    return Rule(**content)


def _table_arrays(X: AnyTable) -> dict[str, Pieces]:
    if not is_sparse(X):
        return {"added_X": Pieces.of(X)}
    return {
        "added_X": Pieces.of(X.data),
        "added_columns": Pieces.of(X.indices),
        "added_begin": Pieces.of(X.indptr),
    }


def _added_rows(n_features: Any, arrays: Mapping[str, NDArray[Any]]) -> AddedRows | None:
    expected = dict(REMOVED)
    if "added_ids" in arrays:
        expected |= ADDED
        expected |= WEIGHT if "added_weight" in arrays else {}
        expected |= SPARSE if "added_begin" in arrays else {}
    if set(arrays) != set(expected):
        raise FormError("it does not have the arrays of an update")
    for name, dtypes in expected.items():
        if arrays[name].dtype not in dtypes:
            raise FormError(f"{name} has the wrong type {arrays[name].dtype}")
    if "added_ids" not in arrays:
        if n_features is not None:
            raise FormError("it has features but no rows to add")
        return None
    if type(n_features) is not int or n_features < 1:
        raise FormError("n_features is not a positive integer")
    ids, y, weight = arrays["added_ids"], arrays["added_y"], arrays.get("added_weight")
    for name, values in (("added_y", y), ("added_weight", weight)):
        if values is not None and len(values) != len(ids):
            raise FormError(f"{name} has {len(values)} values for {len(ids)} rows")
    return AddedRows(_table(arrays, len(ids), n_features), y, weight, ids)


def _table(arrays: Mapping[str, NDArray[Any]], n_rows: int, n_features: int) -> AnyTable:
    values = arrays["added_X"]
    if "added_begin" not in arrays:
        if len(values) != n_rows * n_features:
            raise FormError(f"added_X has {len(values)} values for {n_rows} rows")
        return values.reshape(n_rows, n_features)
    begin, columns = arrays["added_begin"], arrays["added_columns"]
    if len(begin) != n_rows + 1 or begin[0] != 0 or (begin[1:] < begin[:-1]).any():
        raise FormError("added_begin does not contain the first cell of each row")
    if not begin[-1] == len(columns) == len(values):
        raise FormError("added_columns and added_X do not match added_begin")
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_features:
        raise FormError("added_columns contains a feature that does not exist")
    first = np.zeros(len(columns), dtype=bool)  # of its row
    first[begin[:-1][begin[:-1] < len(columns)]] = True
    if (~first[1:] & (columns[1:] <= columns[:-1])).any():
        raise FormError("added_columns does not ascend within every row")
    return csr((values, columns, begin), (n_rows, n_features))
