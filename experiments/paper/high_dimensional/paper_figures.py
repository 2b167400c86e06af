"""The paper's figures for RCV1 and News20; its ThunderGBM, on a GPU, was not run here."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.libraries import OURS


class PaperSet(NamedTuple):
    """Size of one of the paper's two sets."""

    n_train: int
    n_test: int
    n_columns: int


SETS = {
    "RCV1": PaperSet(20_242, 677_399, 47_236),
    "News20": PaperSet(5_000, 14_996, 1_355_191),
}

CRASHED = None  # "Seg. Fault" in its tables
SECONDS: dict[str, dict[str, float | None]] = {
    "RCV1": {"xgboost": 459.75, "lightgbm": 59.63, "catboost": 335.70, OURS: 295.43},
    "News20": {"xgboost": 637.02, "lightgbm": 28.42, "catboost": CRASHED, OURS: 225.73},
}
MEGABYTES: dict[str, dict[str, float | None]] = {
    "RCV1": {"xgboost": 3_008.28, "lightgbm": 2_922.32, "catboost": 263.63, OURS: 185_851.72},
    "News20": {"xgboost": 3_061.99, "lightgbm": 2_509.29, "catboost": CRASHED, OURS: 128_131.43},
}


class Figures(NamedTuple):
    """One row of the table of updates, in one of its halves."""

    ours: float  # milliseconds per tree
    xgboost: float  # times faster than retraining these
    lightgbm: float
    catboost: float | None


# One line for each size of D', the added or removed rows.
ADDING = {
    "RCV1": (
        Figures(21.431, 214.5, 27.8, 156.6),
        Figures(37.707, 121.9, 15.8, 89.0),
        Figures(39.428, 116.6, 15.1, 85.1),
        Figures(43.901, 104.7, 13.6, 76.5),
    ),
    "News20": (
        Figures(11.76, 541.7, 24.2, CRASHED),
        Figures(17.113, 372.2, 16.6, CRASHED),
        Figures(22.261, 286.2, 12.8, CRASHED),
        Figures(23.469, 271.4, 12.1, CRASHED),
    ),
}
REMOVING = {
    "RCV1": (
        Figures(19.268, 238.6, 30.9, 174.2),
        Figures(29.232, 157.3, 20.4, 114.8),
        Figures(48.218, 95.3, 12.4, 69.6),
        Figures(70.666, 65.1, 8.4, 47.5),
    ),
    "News20": (
        Figures(7.718, 825.4, 36.8, CRASHED),
        Figures(12.363, 515.3, 23.0, CRASHED),
        Figures(30.076, 211.8, 9.5, CRASHED),
        Figures(37.825, 168.4, 7.5, CRASHED),
    ),
}
UPDATES = {"add": ADDING, "remove": REMOVING}
