"""Contenders: graftboost under several settings, and the alternatives in use today."""

from __future__ import annotations

from experiments.harness.contenders.contender import Contender
from experiments.harness.contenders.lightgbm_refit import LightGBMRefit
from experiments.harness.contenders.ours import Ours, Paper, Predecessor, Untouched
from experiments.harness.contenders.retrained import retrained
from experiments.harness.contenders.sisa import Sisa
from experiments.harness.contenders.xgboost_refresh import XGBoostRefresh

__all__ = ["CONTENDERS", "NAMES", "Contender"]

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
