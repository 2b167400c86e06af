"""What the classifier and the regressor share: checking what comes in and calling the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from graftboost._engine import BinMap, Forest, SparseTable
from graftboost.estimators.copying import Copyable
from graftboost.estimators.memory import stats_bytes
from graftboost.estimators.parameters import CONSTRAINTS
from graftboost.estimators.progress import CallbackSupportMixin, OnIteration, Progress
from graftboost.estimators.saving import Savable
from graftboost.estimators.seed import draw_seed
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_lock import UpdateLock
from graftboost.input.bin_edges import check_bin_edges
from graftboost.input.columns import Columns
from graftboost.input.row_ids import check_row_ids
from graftboost.input.rows import Rows, check_enough_to_train, share_form
from graftboost.input.sparse import for_engine
from graftboost.input.table import read_table
from graftboost.input.weights import check_weight
from graftboost.input.wiping import Copies, largest


class GraftBoost(CallbackSupportMixin, Copyable, Savable):
    """Boosted trees of either kind; not for users, who take one of the two estimators.

    A fitted estimator holds the engine's forest and what was learned about the columns of X, and
    reads everything else off these two; so a fit that fails leaves no trace.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    _forest: Forest
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
        l2_regularization: float = 0.0,
        max_bins: int = 1024,
        split_sample: float = 0.1,
        binning: str = "quantile",
        bin_edges: Mapping[str | int, ArrayLike] | Sequence[ArrayLike | None] | None = None,
        subsample: float = 1.0,
        categorical_features: ArrayLike | None = "from_dtype",
        tolerance_rule: str = "regret",
        tolerance: float = 1.2,
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
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.split_sample = split_sample
        self.binning = binning
        self.bin_edges = bin_edges
        self.subsample = subsample
        self.categorical_features = categorical_features
        self.tolerance_rule = tolerance_rule
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
        """Train a model, forgetting any that was trained before.

        Parameters
        ----------
        X : array-like, data frame or sparse table of shape (n_rows, n_features)
            Features. NaN and null are missing values.
        y : array-like of shape (n_rows,)
            Targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row; zero or more. Only ratios matter, unless `l2_regularization` is set.
            Weights are rounded to a fraction of the largest one: 2**-20 for a regressor, 2**-24
            for a classifier, and more if the weights of many rows add up to more than the sums can
            hold. A positive weight below that fraction counts as that fraction.
            A row of weight zero is held by the model but does not change it. A class whose rows
            all weigh zero stays in `classes_`, with a small probability.
        row_ids : array-like of int of shape (n_rows,), default=None
            A unique id for each row, by which it is known from now on. Rows are numbered from 0 if
            no ids are given.
        X_val, y_val : like X and y, default=None
            Rows on which the loss is measured after each iteration. Without `early_stopping`, the
            losses are only recorded.
        sample_weight_val : array-like, default=None
            Weights of the rows of `X_val`.

        Returns
        -------
        self
            The estimator, fitted.
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
        """Check what `fit` is given and train; returns the attributes of a fitted estimator."""
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
        # Rows that are to be held out have their ids too.
        next_id = table.n_rows if rows.ids is None else largest(rows.ids) + 1
        validation = self._read_validation(*given_validation, columns, classes)
        if validation is not None:
            validation = validation.weighed_by_class(class_weights)
            rows, validation = share_form(rows, validation)

        n_threads = thread_count(self.n_jobs)
        seed = draw_seed(self.random_state)
        if self.early_stopping and validation is None:
            rows, validation = rows.hold_out(self.validation_fraction, seed)
        check_enough_to_train(rows, validation, classes, self.validation_fraction)
        if validation is not None:
            validation = validation.with_weights_near_one()
        bin_edges = check_bin_edges(self.bin_edges, table, columns)

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        progress = Progress(self, {"X": X, "y": y, "metadata": metadata})
        forest = self._train(
            rows,
            validation,
            columns.n_categories,
            bin_edges,
            1 if classes is None else len(classes),
            seed,
            n_threads,
            progress.on_iteration,
        )
        learned: dict[str, Any] = {
            "_forest": forest,
            "_update_lock": UpdateLock(),
            "_next_id": next_id,
            "_columns": columns,
            "n_features_in_": table.n_features,
        }
        if classes is not None:
            learned["_classes"] = {len(classes): classes}
            learned["_fitted_class_weights"] = (
                None if class_weights is None else (classes.tolist(), class_weights.tolist())
            )
        return learned, progress

    def _learn(self, learned: dict[str, Any], progress: Progress) -> None:
        """Become the model that was trained, and tell those who follow the fit.

        What they do may fail, or be stopped by Ctrl-C: then the fit has failed, and the model is
        the one from before, if there was one.
        """
        before = {name: self.__dict__[name] for name in learned if name in self.__dict__}
        try:
            self.__dict__.update(learned)  # at once: not even Ctrl-C comes between
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
    ) -> Forest:
        """Call the engine. Everything it is given has been checked."""
        # A row that weighs nothing is held by the model, but leaves no mark on the bins.
        counted = rows.that_count()
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
        return Forest.fit(
            bins,
            X,
            rows.y,
            rows.weight,
            rows.ids,
            {1: "squared", 2: "logistic"}.get(n_classes, "softmax"),
            n_classes,
            self.n_estimators,
            self.learning_rate,
            self.max_leaf_nodes,
            self.min_samples_leaf,
            self.l2_regularization,
            self.subsample,
            seed,
            bool(self.updatable),
            n_threads,
            X_val=None if validation is None else for_engine(validation.X),
            y_val=None if validation is None else validation.y,
            sample_weight_val=None if validation is None else validation.weight,
            n_iter_no_change=self.n_iter_no_change if self.early_stopping else 0,
            tol=self.tol,
            on_iteration=on_iteration,
            stats_memory=stats_bytes(self.stats_memory),
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
        """Return the classes in `y`, if it holds classes, and the target as the engine takes it."""

    @abstractmethod
    def _read_known_target(
        self, y_val: Any, n_rows: int, classes: NDArray[Any] | None
    ) -> NDArray[np.float64]:
        """Return a target for validation, whose classes must be among those known."""

    def _class_weights(
        self, classes: NDArray[Any] | None, target: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        return None

    def _encode(self, X: Any) -> NDArray[Any] | SparseTable:
        """Check X against the columns of fit and return it as the engine takes it."""
        check_is_fitted(self)
        table = read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return for_engine(self._columns.encode(table))

    def _raw_scores(self, X: Any) -> NDArray[np.float64]:
        matrix = self._encode(X)
        return self._forest.raw_scores(matrix, thread_count(self.n_jobs))

    def _staged_raw_scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        # Not itself a generator, so that bad input raises here and not at the first iteration.
        matrix = self._encode(X)
        forest, n_threads = self._forest, thread_count(self.n_jobs)

        def stages() -> Iterator[NDArray[np.float64]]:
            scores: Any = 0.0
            for iteration in range(forest.n_iterations):
                scores = scores + forest.raw_scores(matrix, n_threads, iteration, iteration + 1)
                yield scores.copy()  # the caller may change it

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
            tree ``iteration * n_classes + class`` is in that column.
        """
        matrix = self._encode(X)
        return self._forest.apply(matrix, thread_count(self.n_jobs))

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the features, if X had names and all were strings."""
        check_is_fitted(self)
        if self._columns.names is None:
            raise AttributeError(f"{type(self).__name__} was fitted on X without feature names.")
        return self._columns.names

    @property
    def n_iter_(self) -> int:
        """How many iterations the model has."""
        check_is_fitted(self)
        return self._forest.n_iterations

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Each feature's share of the gain of all splits."""
        check_is_fitted(self)
        gains = self._forest.gain_importances()
        total = gains.sum()
        return gains / total if total > 0 else gains

    @property
    def validation_losses_(self) -> NDArray[np.float64]:
        """Loss of the validation rows after each iteration that was trained."""
        check_is_fitted(self)
        losses = self._forest.validation_losses
        if not len(losses):
            raise AttributeError(
                f"{type(self).__name__} was fitted without validation rows. Pass X_val and y_val, "
                "or set early_stopping."
            )
        return losses

    @property
    def best_iteration_(self) -> int:
        """After how many iterations the validation loss was least."""
        return int(np.argmin(self.validation_losses_)) + 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags
