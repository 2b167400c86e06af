"""The regressor."""

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
    """Gradient boosted trees for a numeric target, by squared error.

    Missing values need no care, and X may be an array or a data frame of pandas, polars or pyarrow.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_features_in_ : int
        How many features X had.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if X had names and all were strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Each feature's share of the gain of all splits.
    n_iter_ : int
        How many iterations the model has.
    n_rows_ : int
        How many rows the model holds. Rows held out for validation are not among them.
    row_ids_ : ndarray of int64 of shape (n_rows_,)
        Their ids.
    validation_losses_ : ndarray
        Half the mean squared error of the validation rows after each iteration that was trained.
    best_iteration_ : int
        After how many iterations that loss was least.

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
            Features. Values beyond those seen in `fit` are treated like the nearest ones seen; a
            category that was not seen belongs to none of those that were.

        Returns
        -------
        ndarray of shape (n_rows,)
            Targets.
        """
        return self._raw_scores(X)[:, 0]

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield what `predict` would return after each iteration.

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
