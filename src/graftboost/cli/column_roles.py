"""The roles of the columns of a file, and how they are restored from a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graftboost.store import Store


@dataclass(frozen=True)
class ColumnRoles:
    """The roles of columns; columns without a role are features."""

    target: str
    row_id: str | None
    weight: str | None
    keep: list[str]
    drop: list[str]

    def features(self, names: list[str]) -> list[str]:
        """Return the columns that are features."""
        others = {self.target, self.row_id, self.weight, *self.keep, *self.drop}
        return [name for name in names if name not in others]


def roles_of(store: Store) -> ColumnRoles:
    """Return the roles that `graftboost fit` recorded in a store."""
    try:
        roles = ColumnRoles(**store.notes)
        names: list[Any] = [roles.target, roles.row_id, roles.weight, *roles.keep, *roles.drop]
        if names[0] is None or not all(isinstance(name, str | None) for name in names):
            raise TypeError
        return roles
    except TypeError:
        raise ValueError(
            f"{store.path} was not created by `graftboost fit`, so the target column is not known. "
            "Add rows with Store.add in Python."
        ) from None


def feature_names(model: Any) -> list[str]:
    """Return the names of the features; raises ValueError if they have none."""
    try:
        return list(model.feature_names_in_)
    except AttributeError:
        raise ValueError(
            "The model was trained on columns without names, so they cannot be matched with the "
            "columns of a file. Use the model from Python."
        ) from None


def text_columns(model: Any) -> list[str]:
    """Return the features with text categories, even if these look like numbers."""
    return [
        str(feature_names(model)[feature])
        for feature, categories in model._columns.categories.items()
        if categories.kind == "text"
    ]


def has_text_classes(model: Any) -> bool:
    """Tell whether the classes of a model are text."""
    classes = getattr(model, "classes_", None)
    return classes is not None and classes.dtype.kind in "OU"
