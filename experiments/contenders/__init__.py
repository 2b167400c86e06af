"""Who is compared: our engine under several settings, and what people do today."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.settings import Settings
from datasets import Task
from experiments.contenders.contender import Contender
from experiments.contenders.lightgbm_refit import LightGBMRefit
from experiments.contenders.ours import Ours, Paper, Predecessor, Untouched
from experiments.contenders.retrained import retrained
from experiments.contenders.sisa import Sisa
from experiments.contenders.xgboost_refresh import XGBoostRefresh

__all__ = ["CONTENDERS", "NAMES", "Contender", "contenders_for"]

CONTENDERS: dict[str, type[Contender]] = {
    kind.name: kind
    for kind in (
        Ours,
        Paper,
        Predecessor,
        Untouched,
        retrained("lightgbm"),
        retrained("xgboost"),
        retrained("catboost"),
        retrained("sklearn"),
        LightGBMRefit,
        XGBoostRefresh,
        Sisa,
    )
}
NAMES = tuple(CONTENDERS)


def contenders_for(
    task: Task, settings: Settings, names: Sequence[str] | None = None
) -> tuple[list[Contender], list[str]]:
    """New contenders of these names, all if None, and the titles of libraries that are missing."""
    wanted = NAMES if names is None else names
    unknown = [name for name in wanted if name not in CONTENDERS]
    if unknown:
        raise ValueError(
            f"names holds {unknown[0]!r}, which is no contender. Choose from {', '.join(NAMES)}."
        )
    kinds = [CONTENDERS[name] for name in wanted]
    skipped = [kind.library.title for kind in kinds if not kind.available()]
    there = [kind(task, settings) for kind in kinds if kind.available()]
    return there, list(dict.fromkeys(skipped))
