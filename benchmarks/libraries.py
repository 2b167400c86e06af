"""One adapter per library, which maps `Settings` to the parameters of the library."""

from __future__ import annotations

import importlib
import importlib.metadata
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import Settings
from datasets import Table, Task


class Library(ABC):
    """A gradient boosting library with scikit-learn estimators."""

    name: ClassVar[str]  # on the command line
    title: ClassVar[str]  # in tables
    module: ClassVar[str]
    distribution: ClassVar[str]
    classifier: ClassVar[str]
    regressor: ClassVar[str]

    def load(self) -> Any:
        """Import the library; raises ImportError if it is not installed."""
        return importlib.import_module(self.module)

    def available(self) -> bool:
        """Whether the library is installed."""
        try:
            self.load()
        except ImportError:
            return False
        return True

    def version(self) -> str:
        """Version of the installed library."""
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return "unknown"

    def estimator(self, task: Task) -> Any:
        """Class of the library's estimator for a task."""
        name = self.classifier if task == "classification" else self.regressor
        return getattr(self.load(), name)

    @abstractmethod
    def model(self, task: Task, settings: Settings) -> Any:
        """Return an estimator that is not fitted."""

    def predict(
        self, model: Any, X: Table, task: Task, settings: Settings
    ) -> NDArray[np.floating[Any]]:
        """Class probabilities, or the predicted target."""
        scores = model.predict_proba(X) if task == "classification" else model.predict(X)
        return np.asarray(scores)

    def thread_limit(self, threads: int) -> AbstractContextManager[object]:
        """Context for libraries whose estimators have no parameter for threads."""
        return nullcontext()


class GraftBoost(Library):
    """graftboost, with the state that updates need."""

    name = title = module = distribution = "graftboost"
    classifier, regressor = "GraftBoostClassifier", "GraftBoostRegressor"

    def model(self, task: Task, settings: Settings) -> Any:
        return self.estimator(task)(
            n_estimators=settings.iterations,
            learning_rate=settings.shrinkage,
            max_leaf_nodes=settings.leaves,
            min_samples_leaf=settings.min_rows,
            n_jobs=settings.threads,
            random_state=0,
        )


class GraftBoostFixed(GraftBoost):
    """graftboost without that state: a model that cannot be updated."""

    name = "graftboost-fixed"
    title = "graftboost, `updatable=False`"

    def model(self, task: Task, settings: Settings) -> Any:
        return super().model(task, settings).set_params(updatable=False)


class LightGBM(Library):
    """The yardstick of all ratios."""

    name = module = distribution = "lightgbm"
    title = "LightGBM"
    classifier, regressor = "LGBMClassifier", "LGBMRegressor"

    def model(self, task: Task, settings: Settings) -> Any:
        return self.estimator(task)(
            n_estimators=settings.iterations,
            learning_rate=settings.shrinkage,
            num_leaves=settings.leaves,
            min_child_samples=settings.min_rows,
            n_jobs=settings.threads,
            random_state=0,
            verbose=-1,
        )


class XGBoost(Library):
    """It limits a leaf by its hessians, not by its rows; that limit keeps its default."""

    name = module = distribution = "xgboost"
    title = "XGBoost"
    classifier, regressor = "XGBClassifier", "XGBRegressor"

    def model(self, task: Task, settings: Settings) -> Any:
        return self.estimator(task)(
            n_estimators=settings.iterations,
            learning_rate=settings.shrinkage,
            tree_method="hist",
            grow_policy="lossguide",
            max_leaves=settings.leaves,
            max_depth=0,
            n_jobs=settings.threads,
            random_state=0,
            verbosity=0,
        )


class CatBoost(Library):
    """For several classes it grows one tree per iteration, with a vector in each leaf."""

    name = module = distribution = "catboost"
    title = "CatBoost"
    classifier, regressor = "CatBoostClassifier", "CatBoostRegressor"

    def model(self, task: Task, settings: Settings) -> Any:
        return self.estimator(task)(
            iterations=settings.iterations,
            learning_rate=settings.shrinkage,
            grow_policy="Lossguide",
            max_leaves=settings.leaves,
            depth=16,  # its maximum; the default of 6 would limit the leaves
            min_data_in_leaf=settings.min_rows,
            thread_count=settings.threads,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
        )

    def predict(
        self, model: Any, X: Table, task: Task, settings: Settings
    ) -> NDArray[np.floating[Any]]:
        predict = model.predict_proba if task == "classification" else model.predict
        return np.asarray(predict(X, thread_count=settings.threads))


class ScikitLearn(Library):
    """HistGradientBoosting, whose threads are set through OpenMP."""

    name, module, distribution = "sklearn", "sklearn.ensemble", "scikit-learn"
    title = "scikit-learn"
    classifier = "HistGradientBoostingClassifier"
    regressor = "HistGradientBoostingRegressor"

    def model(self, task: Task, settings: Settings) -> Any:
        return self.estimator(task)(
            max_iter=settings.iterations,
            learning_rate=settings.shrinkage,
            max_leaf_nodes=settings.leaves,
            min_samples_leaf=settings.min_rows,
            early_stopping=False,
            random_state=0,
        )

    def thread_limit(self, threads: int) -> AbstractContextManager[object]:
        threadpoolctl = importlib.import_module("threadpoolctl")
        limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(
            limits=threads, user_api="openmp"
        )
        return limits


LIBRARIES: dict[str, Library] = {
    library.name: library
    for library in (GraftBoost(), LightGBM(), XGBoost(), CatBoost(), ScikitLearn())
}
OURS, YARDSTICK = GraftBoost.name, LightGBM.name

# Measured for its memory only, so it is not among the libraries to choose from.
FIXED = GraftBoostFixed()
ALL_LIBRARIES: dict[str, Library] = {OURS: LIBRARIES[OURS], FIXED.name: FIXED, **LIBRARIES}


def warm_up(library: Library, task: Task, settings: Settings) -> None:
    """Fit and predict a few synthetic rows, so that later times exclude lazy imports."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4), dtype=np.float32)
    y = (X[:, 0] > 0).astype(np.int64) if task == "classification" else X[:, 0].astype(np.float64)
    with library.thread_limit(settings.threads):
        library.predict(library.model(task, settings).fit(X, y), X, task, settings)
