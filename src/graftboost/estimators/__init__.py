"""The scikit-learn interface: `GraftBoostClassifier`, `GraftBoostRegressor` and `load`.

The estimators are imported when they are first used, because scikit-learn takes long to import. A
store that removes rows uses modules of this package, but no estimator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graftboost.estimators.classifier import GraftBoostClassifier
    from graftboost.estimators.loading import load
    from graftboost.estimators.regressor import GraftBoostRegressor
    from graftboost.estimators.report import UpdateReport

__all__ = ["GraftBoostClassifier", "GraftBoostRegressor", "UpdateReport", "load"]

_MODULES = {
    "GraftBoostClassifier": "classifier",
    "GraftBoostRegressor": "regressor",
    "UpdateReport": "report",
    "load": "loading",
}


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
