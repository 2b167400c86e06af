"""The estimator for regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from graftboost.estimators.base_estimator import GraftBoost
from graftboost.estimators.parameters import describe_parameters
from graftboost.input.targets import check_target


@describe_parameters
class GraftBoostRegressor(RegressorMixin, GraftBoost):
    """Gradient boosted trees for a numeric target, with squared error.

    Missing values are supported. X may be an array, a data frame of pandas, polars or pyarrow, or
    a sparse matrix.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_features_in_ : int
        Number of features of X in `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features. Defined only if all column names of X are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the total gain of all splits.
    n_iter_ : int
        Number of iterations of the model.
    n_rows_ : int
        Number of rows the model holds, not counting rows held out for validation.
    row_ids_ : ndarray of int64 of shape (n_rows_,)
        Ids of the rows the model holds.
    validation_losses_ : ndarray
        Half the mean squared error of the validation rows after each trained iteration.
    best_iteration_ : int
        Number of iterations with the smallest validation loss.

    Examples
    --------
    >>> from graftboost import GraftBoostRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GraftBoostRegressor(n_estimators=50).fit(X, y)
    >>> model.score(X, y) > 0.6
    True
    """

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted target of each row.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features. A value outside the range of `fit` falls into the outermost bin. An unseen
            category is different from all known categories.

        Returns
        -------
        ndarray of shape (n_rows,)
            Targets.
        """
        return self._raw_scores(X)[:, 0]

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the result of `predict` after each iteration.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        iterator of ndarray of shape (n_rows,)
            Targets.
        """
        return (scores[:, 0] for scores in self._staged_raw_scores(X))

    def _read_target(self, y: Any, n_rows: int) -> tuple[None, NDArray[np.float64]]:
        return None, check_target(y, n_rows)

    def _read_known_target(
        self, y_val: Any, n_rows: int, classes: NDArray[Any] | None
    ) -> NDArray[np.float64]:
        return check_target(y_val, n_rows, "y_val")

    def _read_added_target(
        self, y: Any, n_rows: int
    ) -> tuple[NDArray[np.float64], list[int], None]:
        return check_target(y, n_rows), [], None
