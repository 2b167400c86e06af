"""Who is compared: our engine under several settings, and what people do today."""

from __future__ import annotations

from experiments.contenders.contender import Contender
from experiments.contenders.lightgbm_refit import LightGBMRefit
from experiments.contenders.ours import Ours, Paper, Predecessor, Untouched
from experiments.contenders.retrained import retrained
from experiments.contenders.sisa import Sisa
from experiments.contenders.xgboost_refresh import XGBoostRefresh

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
