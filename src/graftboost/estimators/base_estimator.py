"""The base class of both estimators: validates input, trains, and predicts raw scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from graftboost._engine import BinMap, EngineModel, FitParams, SparseTable
from graftboost.estimators.copying import Copyable
from graftboost.estimators.learning import fitted_attributes
from graftboost.estimators.memory import stats_bytes
from graftboost.estimators.parameters import CONSTRAINTS
from graftboost.estimators.progress import CallbackSupportMixin, OnIteration, Progress
from graftboost.estimators.saving import Savable
from graftboost.estimators.seed import draw_seed
from graftboost.estimators.threads import thread_count
from graftboost.input.bin_edges import check_bin_edges
from graftboost.input.columns import Columns
from graftboost.input.row_ids import check_row_ids
from graftboost.input.rows import (
    RowCounts,
    Rows,
    check_enough_to_train,
    share_form,
    warn_about_unequal_weights,
)
from graftboost.input.sparse import for_engine
from graftboost.input.table import read_table
from graftboost.input.weights import check_weight
from graftboost.input.wiping import Copies, largest


class GraftBoost(CallbackSupportMixin, Copyable, Savable):
    """The base class of `GraftBoostClassifier` and `GraftBoostRegressor`; not for direct use.

    A fitted estimator holds the engine model and the columns of X. All fitted attributes are
    derived from these two, so a fit that fails changes nothing.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    _engine_model: EngineModel
    _columns: Columns
    _fitted_class_weights: tuple[list[Any], list[float]] | None
    n_features_in_: int

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
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian = min_hessian
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.split_sample = split_sample
        self.binning = binning
        self.bin_edges = bin_edges
        self.subsample = subsample
        self.categorical_features = categorical_features
        self.fidelity = fidelity
        self.memory_floor = memory_floor
        self.update_rule = update_rule
        self.tolerance = tolerance
        self.updatable = updatable
        self.stats_memory = stats_memory
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Train a model. A model that was trained before is discarded.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features. NaN and null are missing values.
        y : array-like of shape (n_rows,)
            Targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative weight of each row. Only the ratios of weights matter, unless
            `l2_regularization` is set; `min_hessian` is in units of the median weight. Weights are
            rounded to multiples of a fraction of the largest weight: 2**-20 for a regressor,
            2**-24 for a classifier, and a larger fraction if the sums of weights would overflow. A
            smaller positive weight is rounded up to that fraction. The model holds rows of weight
            zero, but they have no effect. A class whose rows all have weight zero stays in
            `classes_`, with a small probability.
        row_ids : array-like of int of shape (n_rows,), default=None
            A unique id for each row, used by `remove` and `update`. Default: rows are numbered
            from 0.
        X_val, y_val : like X and y, default=None
            Validation rows. Their loss is computed after each iteration and recorded in
            `validation_losses_`; it affects the model only with `early_stopping`.
        sample_weight_val : array-like, default=None
            Weights of the validation rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        with Copies() as copies:
            learned, progress = self._trained(
                X, y, sample_weight, row_ids, (X_val, y_val, sample_weight_val), copies
            )
        self._learn(learned, progress)
        return self

    def _trained(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        given_validation: tuple[Any, Any, ArrayLike | None],
        copies: Copies,
    ) -> tuple[dict[str, Any], Progress]:
        """Validate the arguments of `fit` and train; return the fitted attributes."""
        table = read_table(X)
        columns = Columns.learn(table, self.categorical_features)
        classes, target = self._read_target(y, table.n_rows)
        class_weights = self._class_weights(classes, target)
        rows = Rows(
            columns.encode(table, copies),
            target,
            check_weight(sample_weight, table.n_rows),
            check_row_ids(row_ids, table.n_rows),
            copies,
        ).weighed_by_class(class_weights)
        # Includes the ids of rows that are held out.
        next_id = table.n_rows if rows.ids is None else largest(rows.ids) + 1
        validation = self._read_validation(*given_validation, columns, classes)
        if validation is not None:
            validation = validation.weighed_by_class(class_weights)
            rows, validation = share_form(rows, validation)

        n_threads = thread_count(self.n_jobs)
        seed = draw_seed(self.random_state)
        if self.early_stopping and validation is None:
            rows, validation = rows.hold_out(self.validation_fraction, seed)
        counts = RowCounts.of(rows, classes)
        check_enough_to_train(counts, validation, self.validation_fraction)
        if validation is not None:
            validation = validation.with_weights_near_one()
        bin_edges = check_bin_edges(self.bin_edges, table, columns)

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        progress = Progress(self, {"X": X, "y": y, "metadata": metadata})
        engine_model = self._train(
            rows,
            validation,
            columns.n_categories,
            bin_edges,
            1 if classes is None else len(classes),
            seed,
            n_threads,
            progress.on_iteration,
        )
        if not engine_model.gain_importances().any():
            warn_about_unequal_weights(counts, self.min_samples_leaf, self.min_hessian)
        learned = fitted_attributes(engine_model, next_id, columns, classes, class_weights)
        return learned, progress

    def _learn(self, learned: dict[str, Any], progress: Progress) -> None:
        """Set the fitted attributes and notify callbacks.

        If a callback fails or is interrupted, the fit has failed and the previous attributes are
        restored.
        """
        before = {name: self.__dict__[name] for name in learned if name in self.__dict__}
        try:
            self.__dict__.update(learned)  # in one step, which Ctrl-C cannot interrupt
            progress.close()
        except BaseException:
            if not before:
                for name in learned:
                    self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _train(
        self,
        rows: Rows,
        validation: Rows | None,
        n_categories: dict[int, int],
        bin_edges: dict[int, list[float]],
        n_classes: int,
        seed: int,
        n_threads: int,
        on_iteration: OnIteration | None,
    ) -> EngineModel:
        """Call the engine with validated arguments."""
        # The model holds rows of weight zero, but its bins do not depend on them.
        counted = rows.of_positive_weight()
        X = for_engine(rows.X)
        bins = BinMap.fit(
            X if counted is rows else for_engine(counted.X),
            counted.ids,
            n_categories,
            self.max_bins,
            self.split_sample,
            self.binning == "width",
            bin_edges,
            seed,
            n_threads,
            rare_below=self.min_samples_leaf,
        )
        return EngineModel.fit(
            bins,
            X,
            rows.y,
            rows.weight,
            rows.ids,
            self._fit_params(n_classes, seed),
            n_threads,
            X_val=None if validation is None else for_engine(validation.X),
            y_val=None if validation is None else validation.y,
            sample_weight_val=None if validation is None else validation.weight,
            on_iteration=on_iteration,
        )

    def _fit_params(self, n_classes: int, seed: int) -> FitParams:
        """Return how the engine fits a model; a regression has one class."""
        return FitParams(
            {1: "squared", 2: "logistic"}.get(n_classes, "softmax"),
            n_classes,
            self.n_estimators,
            self.learning_rate,
            self.max_leaf_nodes,
            self.min_samples_leaf,
            self.min_hessian,
            self.l2_regularization,
            self.subsample,
            seed,
            bool(self.updatable),
            n_iter_no_change=self.n_iter_no_change if self.early_stopping else 0,
            tol=self.tol,
            histogram_memory=stats_bytes(self.stats_memory),
        )

    def _read_validation(
        self,
        X_val: Any,
        y_val: Any,
        sample_weight_val: ArrayLike | None,
        columns: Columns,
        classes: NDArray[Any] | None,
    ) -> Rows | None:
        if X_val is None:
            for argument, value in [("y_val", y_val), ("sample_weight_val", sample_weight_val)]:
                if value is not None:
                    raise ValueError(f"{argument} is given without X_val. Pass both, or neither.")
            return None
        if y_val is None:
            raise ValueError("X_val is given without y_val. Pass both, or neither.")
        table = read_table(X_val, "X_val")
        return Rows(
            columns.encode(table),
            self._read_known_target(y_val, table.n_rows, classes),
            check_weight(sample_weight_val, table.n_rows, "sample_weight_val"),
        )

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any] | None, NDArray[np.float64]]:
        """Return the classes in `y` (None for a regression) and the encoded target."""

    @abstractmethod
    def _read_known_target(
        self, y_val: Any, n_rows: int, classes: NDArray[Any] | None
    ) -> NDArray[np.float64]:
        """Return the encoded target of validation rows, whose classes must be known."""

    def _class_weights(
        self, classes: NDArray[Any] | None, target: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        return None

    def _encode(self, X: Any) -> NDArray[Any] | SparseTable:
        """Check X against the columns of `fit` and return it encoded for the engine."""
        check_is_fitted(self)
        table = read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return for_engine(self._columns.encode(table))

    def _raw_scores(self, X: Any) -> NDArray[np.float64]:
        matrix = self._encode(X)
        return self._engine_model.raw_scores(matrix, thread_count(self.n_jobs))

    def _staged_raw_scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        # Not a generator itself, so that invalid input raises here.
        matrix = self._encode(X)
        engine_model, n_threads = self._engine_model, thread_count(self.n_jobs)

        def stages() -> Iterator[NDArray[np.float64]]:
            scores: Any = 0.0
            for iteration in range(engine_model.n_iterations):
                scores = scores + engine_model.raw_scores(
                    matrix, n_threads, iteration, iteration + 1
                )
                yield scores.copy()  # the caller may modify it

        return stages()

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features.

        Returns
        -------
        ndarray of int32 of shape (n_rows, n_trees)
            Leaf ids. With more than two classes, an iteration has one tree for each class, and
            column ``iteration * n_classes + class`` belongs to that tree.
        """
        matrix = self._encode(X)
        return self._engine_model.apply(matrix, thread_count(self.n_jobs))

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the features. Defined only if all column names of X are strings."""
        check_is_fitted(self)
        if self._columns.names is None:
            raise AttributeError(f"{type(self).__name__} was fitted on X without feature names.")
        return self._columns.names

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the model."""
        check_is_fitted(self)
        return self._engine_model.n_iterations

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each feature in the total gain of all splits."""
        check_is_fitted(self)
        gains = self._engine_model.gain_importances()
        total = math.fsum(gains)  # exact, so features without splits make no difference
        return gains / total if total > 0 else gains

    @property
    def validation_losses_(self) -> NDArray[np.float64]:
        """The loss of the validation rows after each trained iteration."""
        check_is_fitted(self)
        losses = self._engine_model.validation_losses
        if not len(losses):
            raise AttributeError(
                f"{type(self).__name__} was fitted without validation rows. Pass X_val and y_val, "
                "or set early_stopping."
            )
        return losses

    @property
    def best_iteration_(self) -> int:
        """The number of iterations with the smallest validation loss."""
        return int(np.argmin(self.validation_losses_)) + 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags
