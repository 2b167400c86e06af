"""A fitted model as the content of a file, and back.

Nothing here needs scikit-learn: whoever opens a file to take rows out of the model in it does not
wait for an estimator to be made.
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

from graftboost._engine import Forest
from graftboost._version import __version__
from graftboost.persistence import file_format
from graftboost.persistence.atomic_file import Permissions
from graftboost.persistence.file_format import Arrays, Container, Pieces
from graftboost.persistence.json_values import decode, encode, forget_unheld

KIND = "model"
ESTIMATORS = ("GraftBoostClassifier", "GraftBoostRegressor")
LARGEST_ID = np.iinfo(np.int64).max


@dataclass
class Saved:
    """All there is to a fitted estimator.

    Attributes
    ----------
    estimator : str
        Name of its class.
    parameters : dict
        What it was made with.
    feature_names : list of str or None
        Names of the columns of X, if they have names.
    categories : dict of int to list
        The categories of each column that has some. One that no row had when the model was saved
        may be `Forgotten`.
    classes : dict of int to ndarray
        The classes, by how many they are: those there are and those there were. Empty for a
        regression.
    class_weights : tuple of lists or None
        The classes at fit, and the weight of each.
    next_id : int
        The first id that was never used.
    forest : Forest
        The trees, and the state that updates need.
    """

    estimator: str
    parameters: dict[str, Any]
    feature_names: list[str] | None
    categories: dict[int, list[Any]]
    classes: dict[int, NDArray[Any]]
    class_weights: tuple[list[Any], list[float]] | None
    next_id: int
    forest: Forest

    @property
    def n_classes(self) -> int:
        """How many classes there are; 1 for a regression."""
        return max(2, self.forest.trees_per_iteration) if self.classes else 1


def contents(
    saved: Saved, *, state: bool, room: bool = True
) -> tuple[dict[str, Any], dict[str, Pieces]]:
    """Return the header and the arrays of a file.

    Parameters
    ----------
    saved : Saved
        The model. Nobody may change it before the arrays are written.
    state : bool
        Whether the model can be updated when it is read again.
    room : bool, default=True
        Whether to leave room for rows that are added.

    Returns
    -------
    header : dict
        What JSON holds.
    arrays : dict of str to Pieces
        What the engine holds.
    """
    summary, arrays = forest_contents(saved.forest, state=state, room=room)
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
        "forest": summary,
    }
    return header, arrays


def _encode_categories(values: list[Any], feature: int) -> list[Any]:
    what = f"the categories of feature {feature}"
    for value in values:
        if isinstance(value, list | tuple | Mapping | np.ndarray):
            raise TypeError(
                f"{what} hold a value of type {type(value).__name__}, which a file cannot hold. "
                "Use numbers, text or dates, or keep the model with pickle."
            )
    return [encode(value, what) for value in values]


def _categories_held(saved: Saved) -> dict[int, list[Any]]:
    """Return the categories; of those that no row has any more, only what tells them again."""
    if not saved.forest.updatable:
        return saved.categories
    return {
        feature: forget_unheld(values, saved.forest.held_codes(feature)[1:])
        for feature, values in saved.categories.items()
    }


def restore(found: Container, *, verify_state: bool = True) -> Saved:
    """Return the model that a file holds.

    Parameters
    ----------
    found : Container
        What was read. The model works on its memory.
    verify_state : bool, default=True
        Whether to compare the checksums of the state before its first use. All its numbers are
        checked then in any case, so that nothing in a file can make the engine go wrong.

    Returns
    -------
    Saved
        The model.

    Raises
    ------
    InvalidFileError
        If it holds no model, or one that is damaged.
    """
    if found.header.get("kind") != KIND:
        raise file_format.InvalidFileError(
            f"{found.source} holds {found.header.get('kind')!r}, not a model."
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
    forest = restore_forest(found, verify_state=verify_state)
    categories = _checked_categories(header["categories"], forest)
    names = header["feature_names"]
    if names is not None and not (
        isinstance(names, list)
        and len(names) == forest.bins.n_features
        and all(isinstance(name, str) for name in names)
    ):
        raise ValueError("feature_names are not as many texts as there are features")
    next_id = header["next_id"]
    if not isinstance(next_id, int) or not -LARGEST_ID <= next_id <= LARGEST_ID + 1:
        raise ValueError(f"next_id is {next_id!r}")
    classes = decode(header["classes"])
    is_classifier = header["estimator"] == ESTIMATORS[0]
    if is_classifier != (classes is not None) or is_classifier == (
        header["forest"]["loss"] == "squared"
    ):
        raise ValueError(f"a {header['estimator']} has no such classes or loss")
    saved = Saved(
        header["estimator"],
        parameters,
        names,
        categories,
        {} if classes is None else {len(classes): classes},
        _checked_class_weights(decode(header["class_weights"])),
        next_id,
        forest,
    )
    if classes is not None and (
        not isinstance(classes, np.ndarray) or classes.shape != (saved.n_classes,)
    ):
        raise ValueError("classes are not as many as the trees have")
    return saved


def _checked_categories(categories: Any, forest: Forest) -> dict[int, list[Any]]:
    counts = forest.bins.categorical
    decoded = {feature: decode(values) for feature, values in categories}
    if len(decoded) != len(categories) or decoded.keys() != counts.keys():
        raise ValueError("categories are not those of the categorical features")
    for feature, values in decoded.items():
        if not isinstance(values, list) or len(values) != counts[feature]:
            raise ValueError(f"categories of feature {feature} are not {counts[feature]}")
    return decoded


def _checked_class_weights(value: Any) -> tuple[list[Any], list[float]] | None:
    if value is None:
        return None
    labels, weights = value
    if len(labels) != len(weights) or not all(
        isinstance(weight, int | float) for weight in weights
    ):
        raise ValueError("class_weights are not as many numbers as there are classes")
    return labels, weights


# --- the engine's part ----------------------------------------------------------------------------


def forest_contents(
    forest: Forest, *, state: bool, room: bool
) -> tuple[dict[str, Any], dict[str, Pieces]]:
    """Return what there is to know of a forest, and its arrays."""
    arrays = {
        name: Pieces(pieces[0].dtype if pieces else np.dtype(np.int64), distance, pieces)
        for name, distance, pieces in forest.parts(state, room)
    }
    return forest.summary(state, room), arrays


def restore_forest(found: Container, *, verify_state: bool = True) -> Forest:
    """Return the forest that a file holds."""
    summary = found.header.get("forest")
    if not isinstance(summary, dict):
        raise found.invalid("it has no forest")
    state = [name for name in found.arrays if _is_state(name)]
    found.verify(name for name in found.arrays if not _is_state(name))

    def verify() -> None:
        found.verify(state)

    try:
        return Forest.put_together(summary, found.arrays, verify if verify_state else None)
    except (TypeError, ValueError) as error:
        raise found.invalid(str(error)) from error


def _is_state(name: str) -> bool:
    """Tell whether an array is one that only updates need."""
    return name.startswith(("row_", "tree_leaf", "tree_recorded", "kept_sums"))


def pack_forest(forest: Forest) -> bytes:
    """Return a forest, which nobody may be updating, as the bytes of a file."""
    summary, arrays = forest_contents(forest, state=forest.updatable, room=False)
    return file_format.dumps({"kind": "forest", "forest": summary}, arrays)


def unpack_forest(data: bytes) -> Forest:
    """Return the forest that `pack_forest` was given."""
    return restore_forest(file_format.loads(data, "the pickled model"))


# A forest by itself is pickled this way too. Somebody may be updating it, so it is copied first.
copyreg.pickle(Forest, lambda forest: (unpack_forest, (pack_forest(copy.deepcopy(forest)),)))


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
        Where to.
    saved : Saved
        The model.
    state : bool
        Whether with what updates need.
    extra : tuple of mappings
        What else goes into the header, and arrays that go with it.
    permissions : Permissions, default=None
        Who may use the file; with them, a link at the path is replaced, not followed.
    """
    header, arrays = contents(saved, state=state)
    file_format.save(path, {**header, **extra[0]}, {**arrays, **extra[1]}, permissions)
