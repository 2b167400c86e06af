"""Convert a fitted model to the content of a file and back.

This module does not need scikit-learn, so a store can remove rows without importing it.
"""

from __future__ import annotations

import copy
import copyreg
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import EngineModel, ShardServer
from graftboost._version import __version__
from graftboost.persistence import file_format
from graftboost.persistence.atomic_file import Permissions
from graftboost.persistence.file_format import Container
from graftboost.persistence.json_values import decode, encode, forget_unheld
from graftboost.persistence.pieces import Arrays, Pieces

KIND = "model"
ESTIMATORS = ("GraftBoostClassifier", "GraftBoostRegressor")
LARGEST_ID = np.iinfo(np.int64).max


@dataclass
class Saved:
    """The content of a fitted estimator.

    Attributes
    ----------
    estimator : str
        The name of its class.
    parameters : dict
        Its parameters.
    feature_names : list of str or None
        The column names of X, if it has names.
    categories : dict of int to list
        The categories of each categorical column. A category that no row had when the model was
        saved may be `Forgotten`.
    classes : dict of int to ndarray
        The classes by their number, for the current and earlier numbers of classes. Empty for a
        regression.
    class_weights : tuple of lists or None
        The classes of `fit` and their weights.
    next_id : int
        The smallest id that is larger than all ids ever used.
    engine_model : EngineModel
        The trees and the state that updates need.
    """

    estimator: str
    parameters: dict[str, Any]
    feature_names: list[str] | None
    categories: dict[int, list[Any]]
    classes: dict[int, NDArray[Any]]
    class_weights: tuple[list[Any], list[float]] | None
    next_id: int
    engine_model: EngineModel

    @property
    def n_classes(self) -> int:
        """The number of classes; 1 for a regression."""
        return max(2, self.engine_model.trees_per_iteration) if self.classes else 1


def contents(
    saved: Saved, *, state: bool, room: bool = True
) -> tuple[dict[str, Any], dict[str, Pieces]]:
    """Return the header and the arrays of a file.

    Parameters
    ----------
    saved : Saved
        The model. It must not change before the arrays are written.
    state : bool
        Whether to include the state that updates need.
    room : bool, default=True
        Whether to reserve space for rows that are added later.

    Returns
    -------
    header : dict
        Values that JSON supports.
    arrays : dict of str to Pieces
        The arrays of the engine.
    """
    summary, arrays = engine_contents(saved.engine_model, state=state, room=room)
    classes = saved.classes.get(saved.n_classes)
    header = {
        "kind": KIND,
        "written_by": f"graftboost {__version__}",
        "estimator": saved.estimator,
        "parameters": {
            name: encode(value, f"the parameter {name}") for name, value in saved.parameters.items()
        },
        "feature_names": saved.feature_names,
        "categories": [
            [feature, _encode_categories(values, feature)]
            for feature, values in _categories_held(saved).items()
        ],
        "classes": None if classes is None else encode(classes, "classes_"),
        "class_weights": encode(saved.class_weights, "class_weight"),
        "next_id": saved.next_id,
        "engine_model": summary,
    }
    return header, arrays


def _encode_categories(values: list[Any], feature: int) -> list[Any]:
    what = f"the categories of feature {feature}"
    for value in values:
        if isinstance(value, list | tuple | Mapping | np.ndarray):
            raise TypeError(
                f"{what}: a value of type {type(value).__name__} cannot be stored in a file. Use "
                "numbers, text or dates, or save the model with pickle."
            )
    return [encode(value, what) for value in values]


def _categories_held(saved: Saved) -> dict[int, list[Any]]:
    """Return the categories, with those that no row has replaced by their fingerprints."""
    if not saved.engine_model.updatable:
        return saved.categories
    return {
        feature: forget_unheld(values, saved.engine_model.held_codes(feature)[1:])
        for feature, values in saved.categories.items()
    }


def restore(found: Container, *, verify_state: bool = True) -> Saved:
    """Return the model of a file.

    Parameters
    ----------
    found : Container
        The content of the file. The model uses its memory.
    verify_state : bool, default=True
        Whether to verify the checksums of the state before its first use. The engine checks all
        numbers of the state in any case, so that no file can make it misbehave.

    Returns
    -------
    Saved
        The model.

    Raises
    ------
    InvalidFileError
        If the file does not contain a model, or is damaged.
    """
    if found.header.get("kind") != KIND:
        raise file_format.InvalidFileError(
            f"{found.source} contains {found.header.get('kind')!r}, not a model. Check the path."
        )
    try:
        return _restore(found, verify_state)
    except file_format.InvalidFileError:
        raise
    except RecursionError as error:
        raise found.invalid("the header is nested too deeply") from error
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise found.invalid(str(error)) from error


def _restore(found: Container, verify_state: bool) -> Saved:
    header = found.header
    if header["estimator"] not in ESTIMATORS:
        raise ValueError(f"there is no estimator {header['estimator']!r}")
    parameters = {name: decode(value) for name, value in header["parameters"].items()}
    engine_model = restore_engine_model(found, verify_state=verify_state)
    categories = _checked_categories(header["categories"], engine_model)
    names = header["feature_names"]
    if names is not None and not (
        isinstance(names, list)
        and len(names) == engine_model.bins.n_features
        and all(isinstance(name, str) for name in names)
    ):
        raise ValueError("feature_names does not contain one string per feature")
    next_id = header["next_id"]
    if not isinstance(next_id, int) or not -LARGEST_ID <= next_id <= LARGEST_ID + 1:
        raise ValueError(f"next_id is {next_id!r}")
    classes = decode(header["classes"])
    is_classifier = header["estimator"] == ESTIMATORS[0]
    if is_classifier != (classes is not None) or is_classifier == (
        header["engine_model"]["loss"] == "squared"
    ):
        raise ValueError(f"the classes or the loss do not match a {header['estimator']}")
    saved = Saved(
        header["estimator"],
        parameters,
        names,
        categories,
        {} if classes is None else {len(classes): classes},
        _checked_class_weights(decode(header["class_weights"])),
        next_id,
        engine_model,
    )
    if classes is not None and (
        not isinstance(classes, np.ndarray) or classes.shape != (saved.n_classes,)
    ):
        raise ValueError("the number of classes does not match the trees")
    return saved


def _checked_categories(categories: Any, engine_model: EngineModel) -> dict[int, list[Any]]:
    counts = engine_model.bins.categorical
    decoded = {feature: decode(values) for feature, values in categories}
    if len(decoded) != len(categories) or decoded.keys() != counts.keys():
        raise ValueError("categories do not match the categorical features")
    for feature, values in decoded.items():
        if not isinstance(values, list) or len(values) != counts[feature]:
            raise ValueError(f"feature {feature} does not have {counts[feature]} categories")
    return decoded


def _checked_class_weights(value: Any) -> tuple[list[Any], list[float]] | None:
    if value is None:
        return None
    labels, weights = value
    if len(labels) != len(weights) or not all(
        isinstance(weight, int | float) for weight in weights
    ):
        raise ValueError("class_weights does not contain one number per class")
    return labels, weights


# --- the engine's part ----------------------------------------------------------------------------


def engine_contents(
    engine_model: EngineModel | ShardServer, *, state: bool, room: bool
) -> tuple[dict[str, Any], dict[str, Pieces]]:
    """Return the summary and the arrays of an engine model, or of a shard."""
    arrays = {
        name: Pieces(pieces[0].dtype if pieces else np.dtype(np.int64), distance, pieces)
        for name, distance, pieces in engine_model.arrays(state, room)
    }
    return engine_model.summary(state, room), arrays


def restore_engine_model(found: Container, *, verify_state: bool = True) -> EngineModel:
    """Return the engine model of a file."""
    summary = found.header.get("engine_model")
    if not isinstance(summary, dict):
        raise found.invalid("the header has no engine_model")
    state = [name for name in found.arrays if _is_state(name)]
    found.verify(name for name in found.arrays if not _is_state(name))

    def verify() -> None:
        found.verify(state)

    try:
        return EngineModel.from_arrays(summary, found.arrays, verify if verify_state else None)
    except (TypeError, ValueError) as error:
        raise found.invalid(str(error)) from error


def _is_state(name: str) -> bool:
    """Tell whether an array is needed only by updates."""
    return name.startswith(("row_", "tree_leaf", "tree_recorded", "kept_sums"))


def pack_engine_model(engine_model: EngineModel) -> bytes:
    """Return an engine model as the bytes of a file. It must not change meanwhile."""
    summary, arrays = engine_contents(engine_model, state=engine_model.updatable, room=False)
    return file_format.dumps({"kind": "engine_model", "engine_model": summary}, arrays)


def unpack_engine_model(data: bytes) -> EngineModel:
    """Return the engine model for a result of `pack_engine_model`."""
    return restore_engine_model(file_format.loads(data, "the pickled model"))


# An engine model itself is also pickled this way. Another thread may be updating it, so it is
# copied first.
copyreg.pickle(
    EngineModel,
    lambda engine_model: (unpack_engine_model, (pack_engine_model(copy.deepcopy(engine_model)),)),
)


def save(
    path: str | os.PathLike[str],
    saved: Saved,
    *,
    state: bool,
    extra: tuple[Mapping[str, Any], Arrays] = ({}, {}),
    permissions: Permissions | None = None,
) -> None:
    """Write a model to a file.

    Parameters
    ----------
    path : path
        The file.
    saved : Saved
        The model.
    state : bool
        Whether to include the state that updates need.
    extra : tuple of mappings
        Further entries of the header, and further arrays.
    permissions : Permissions, default=None
        The permissions of the file. If given, a link at the path is replaced, not followed.
    """
    header, arrays = contents(saved, state=state)
    file_format.save(path, {**header, **extra[0]}, {**arrays, **extra[1]}, permissions)
