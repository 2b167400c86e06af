"""Copies of an estimator, in memory and as the state for pickle, joblib and skops."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

from graftboost.estimators.update_lock import UpdateLock
from graftboost.input.columns import Columns
from graftboost.persistence.model_file import pack_engine_model, unpack_engine_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graftboost._engine import EngineModel


class Copyable:
    """Gives every copy of a fitted estimator its own model.

    An update changes the engine model in place, so two estimators must never share an engine model.
    Therefore ``copy.copy`` also copies the model and shares only the parameters.

    The state for pickle is a dict of parameters, numbers, text, arrays and bytes. The engine model
    is stored as the bytes of a model file, which are checked when they are read. If no row has a
    category any more, only a fingerprint of the category is stored.
    """

    _engine_model: EngineModel
    _columns: Columns
    _next_id: int
    _classes: dict[int, NDArray[Any]]

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update({**self.__dict__, **self._copied_model()})
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        model = self._copied_model()
        for name, value in self.__dict__.items():
            made.__dict__[name] = model[name] if name in model else copy.deepcopy(value, memo)
        return made

    def _with_engine_model(self, engine_model: EngineModel) -> Self:
        """Return a copy that has this engine model instead of a copy of its own."""
        made = type(self).__new__(type(self))
        made.__dict__.update({**self.__dict__, **self._copied_with(engine_model)})
        return made

    def _copied_model(self) -> dict[str, Any]:
        """Return copies of all attributes that updates change or read."""
        if "_engine_model" not in self.__dict__:
            return {}
        return self._copied_with(copy.deepcopy(self._engine_model))

    def _copied_with(self, engine_model: EngineModel) -> dict[str, Any]:
        return {
            "_engine_model": engine_model,
            "_update_lock": UpdateLock(),
            "_columns": copy.deepcopy(self._columns),
            **self._follows_engine_model(),
        }

    def _follows_engine_model(self) -> dict[str, Any]:
        """Return the attributes that belong to an engine model that was copied just before.

        Another thread may be updating the model. Ids and classes are written before the engine
        model changes, so values read after it was copied may be newer than it, but never older.
        """
        state: dict[str, Any] = {"_next_id": self._next_id}
        if hasattr(self, "_classes"):
            state["_classes"] = {number: found.copy() for number, found in self._classes.items()}
        return state

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if "_engine_model" not in state:
            return state
        del state["_update_lock"]
        engine_model = copy.deepcopy(self._engine_model)
        state.update(self._follows_engine_model())
        state["_columns"] = self._columns.held_by(engine_model).to_plain()
        state["_engine_model"] = pack_engine_model(engine_model)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_engine_model" in state:
            state = {
                **state,
                "_engine_model": unpack_engine_model(state["_engine_model"]),
                "_columns": Columns.from_plain(state["_columns"]),
                "_update_lock": UpdateLock(),
            }
        super().__setstate__(state)  # type: ignore[misc]
