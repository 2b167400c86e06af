"""The estimator for classification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from graftboost.estimators.base_estimator import GraftBoost
from graftboost.estimators.parameters import CONSTRAINTS, describe_parameters
from graftboost.input.targets import check_added_labels, check_known_labels, check_labels
from graftboost.input.weights import weigh_classes


@describe_parameters
class GraftBoostClassifier(ClassifierMixin, GraftBoost):
    """Gradient boosted trees for two or more classes.

    Robust LogitBoost on binned features, with one tree per iteration for two classes and one tree
    per class and iteration for more. Missing values are supported. X may be an array, a data frame
    of pandas, polars or pyarrow, or a sparse matrix.

    Parameters
    ----------
    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which the weights of its rows are multiplied. With
        ``"balanced"``, all classes have the same sum of weights.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
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
        Mean log loss of the validation rows after each trained iteration.
    best_iteration_ : int
        Number of iterations with the smallest validation loss.

    Examples
    --------
    >>> from graftboost import GraftBoostClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GraftBoostClassifier(n_estimators=20, min_samples_leaf=5).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 31,
        min_samples_leaf: int = 20,
        min_hessian: float = 0.1,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        split_sample: float = 1.0,
        binning: str = "quantile",
        bin_edges: Mapping[str | int, ArrayLike] | Sequence[ArrayLike | None] | None = None,
        subsample: float = 1.0,
        categorical_features: ArrayLike | None = "from_dtype",
        class_weight: Mapping[Any, float] | str | None = None,
        fidelity: float = 0.85,
        memory_floor: float = 0.02,
        update_rule: str = "fidelity",
        tolerance: float | None = None,
        updatable: bool = True,
        stats_memory: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            max_leaf_nodes=max_leaf_nodes,
            min_samples_leaf=min_samples_leaf,
            min_hessian=min_hessian,
            l2_regularization=l2_regularization,
            max_bins=max_bins,
            split_sample=split_sample,
            binning=binning,
            bin_edges=bin_edges,
            subsample=subsample,
            categorical_features=categorical_features,
            fidelity=fidelity,
            memory_floor=memory_floor,
            update_rule=update_rule,
            tolerance=tolerance,
            updatable=updatable,
            stats_memory=stats_memory,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        return self._classes_of(self._raw_scores(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features. A value outside the range of `fit` falls into the outermost bin. An unseen
            category is different from all known categories.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return _probabilities(self._raw_scores(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the raw scores: log odds for two classes, the input of softmax for more.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, one score per row, which is positive for the second class.
        """
        return _decision(self._raw_scores(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each iteration.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        iterator of ndarray of shape (n_rows,)
            Classes.
        """
        return map(self._classes_of, self._staged_raw_scores(X))

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the result of `predict_proba` after each iteration.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        iterator of ndarray of shape (n_rows, n_classes)
            Probabilities.
        """
        return map(_probabilities, self._staged_raw_scores(X))

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the result of `decision_function` after each iteration.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        iterator of ndarray of shape (n_rows,) or (n_rows, n_classes)
            Raw scores.
        """
        return map(_decision, self._staged_raw_scores(X))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        check_is_fitted(self)
        return self._classes[max(2, self._engine_model.trees_per_iteration)]

    def _classes_of(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        best = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        # Not `classes_`: an update may have added classes since the scores were computed.
        return self._classes[max(2, scores.shape[1])][best.astype(np.intp)]

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        return check_labels(y, n_rows)

    def _read_known_target(
        self, y_val: Any, n_rows: int, classes: NDArray[Any] | None
    ) -> NDArray[np.float64]:
        assert classes is not None
        return check_known_labels(y_val, n_rows, classes, "y_val")

    def _read_added_target(
        self, y: Any, n_rows: int
    ) -> tuple[NDArray[np.float64], list[int], NDArray[Any]]:
        return check_added_labels(y, n_rows, self.classes_)

    def _class_weights(
        self, classes: NDArray[Any] | None, target: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        assert classes is not None
        counts = np.bincount(target.astype(np.intp), minlength=len(classes))
        return weigh_classes(self.class_weight, classes, counts)

    def _added_class_weights(self, classes: NDArray[Any] | None) -> NDArray[np.float64] | None:
        """Return the weights of `fit`; later classes have the weight in `class_weight`, or one."""
        if self._fitted_class_weights is None:
            return None
        given = self.class_weight if isinstance(self.class_weight, Mapping) else {}
        assert classes is not None
        known = dict(zip(*self._fitted_class_weights, strict=True))
        weights = [
            known.get(plain, given.get(label, 1.0))
            for plain, label in zip(classes.tolist(), classes, strict=True)
        ]
        return np.array(weights, dtype=np.float64)


def _decision(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities; raw scores of more than two classes are overwritten."""
    if scores.shape[1] == 1:
        second = expit(scores[:, 0])
        return np.column_stack([1.0 - second, second])
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
