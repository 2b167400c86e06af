"""Models whose rows are distributed over processes, on one machine or many.

`RayGraftBoostClassifier` and `RayGraftBoostRegressor` need Ray: install ``graftboost[ray]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graftboost.distributed.ray_estimators import (
        RayGraftBoostClassifier,
        RayGraftBoostRegressor,
    )

__all__ = ["RayGraftBoostClassifier", "RayGraftBoostRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from graftboost.distributed import ray_estimators
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError(
            f"{name} needs Ray. Install it with: pip install 'graftboost[ray]'", name="ray"
        ) from error
    return getattr(ray_estimators, name)


def __dir__() -> list[str]:
    return __all__
