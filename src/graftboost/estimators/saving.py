"""Write estimators to files."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from graftboost.estimators.update_lock import UpdateLock
from graftboost.estimators.updating import Updatable
from graftboost.input.categories import Categories
from graftboost.input.columns import Columns
from graftboost.persistence import model_file
from graftboost.persistence.model_file import Saved


class Savable(Updatable, BaseEstimator):
    """The methods that write a fitted estimator to a file and restore it."""

    _fitted_class_weights: tuple[list[Any], list[float]] | None
    n_features_in_: int

    def save(self, path: str | os.PathLike[str], *, updatable: bool | None = None) -> None:
        """Write the model to a file, to be read with `graftboost.load`.

        The file contains only numbers and text. Reading it does not execute any code.

        Parameters
        ----------
        path : path
            The file. An existing file is replaced once the new one is complete.
        updatable : bool, default=None
            Whether the loaded model can be updated. Default: same as the model. False leaves out
            the rows, which makes a small file for prediction only.

        Examples
        --------
        >>> import tempfile
        >>> import graftboost
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = graftboost.GraftBoostClassifier(n_estimators=20).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.graft")
        ...     again = graftboost.load(f"{folder}/model.graft")
        >>> again.remove([17]).removed_ids
        array([17])
        """
        check_is_fitted(self)
        if type(self).__name__ not in model_file.ESTIMATORS:
            raise TypeError(
                f"{type(self).__name__} is a user-defined class, which a file cannot store. Use "
                "pickle instead."
            )
        if updatable and not self._engine_model.updatable:
            self._check_updatable()
        state = self._engine_model.updatable if updatable is None else bool(updatable)
        with self._update_lock.lock:
            model_file.save(path, self._saved(), state=state)

    def _saved(self) -> Saved:
        """Return the content of a file for this model."""
        parameters = self.get_params(deep=False)
        if isinstance(parameters["random_state"], np.random.RandomState):
            parameters["random_state"] = None  # the next fit draws new numbers anyway
        names = self._columns.names
        return Saved(
            type(self).__name__,
            parameters,
            None if names is None else names.tolist(),
            {feature: found.values for feature, found in self._columns.categories.items()},
            getattr(self, "_classes", {}),
            getattr(self, "_fitted_class_weights", None),
            self._next_id,
            self._engine_model,
        )

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        """Return the estimator for the content of a file."""
        known = cls().get_params(deep=False)
        unknown = [name for name in saved.parameters if name not in known]
        if unknown:
            raise ValueError(f"{cls.__name__} has no parameter {unknown[0]!r}")
        model = cls(**saved.parameters)
        model._validate_params()
        names = saved.feature_names
        model.n_features_in_ = saved.engine_model.bins.n_features
        model._columns = Columns(
            None if names is None else np.array(names, dtype=object),
            model.n_features_in_,
            {feature: Categories.restored(found) for feature, found in saved.categories.items()},
        )
        model._engine_model = saved.engine_model
        model._update_lock = UpdateLock()
        model._next_id = saved.next_id
        if saved.classes:
            model._classes = saved.classes
            model._fitted_class_weights = saved.class_weights
        return model
