"""Gradient boosted trees whose training rows can be added and removed in place.

Examples
--------
>>> from graftboost import GraftBoostClassifier
>>> from sklearn.datasets import load_breast_cancer
>>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
>>> model = GraftBoostClassifier().fit(X, y)
>>> model.predict_proba(X).shape
(569, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graftboost._version import __version__

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor, load

__all__ = ["GraftBoostClassifier", "GraftBoostRegressor", "__version__", "load"]


def __getattr__(name: str) -> Any:
    # Importing scikit-learn takes long and is not needed for the version or the command line.
    if name in __all__:
        from graftboost import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
