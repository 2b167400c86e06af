"""What the paper's Table 3 says: seconds of an update, and how much faster that is."""

from __future__ import annotations

from typing import NamedTuple


class Figures(NamedTuple):
    """One row of the table, in one of its halves."""

    ours: float  # seconds of the paper's method
    predecessor: float  # seconds of iGBDT, which adds, or of MU in GBDT, which deletes
    xgboost: float  # times faster than a training of these
    lightgbm: float
    catboost: float


# One line for each size of D', the rows that come or go.
ADDING = {
    "adult": (
        Figures(0.035, 0.595, 270.5, 14.7, 43.8),
        Figures(0.105, 1.145, 90.2, 4.9, 14.6),
        Figures(0.212, 1.296, 44.7, 2.4, 7.2),
        Figures(0.344, 1.573, 27.5, 1.5, 4.5),
    ),
    "credit_info": (
        Figures(0.114, 0.475, 116.8, 16.1, 30.2),
        Figures(0.249, 1.391, 53.5, 7.4, 13.8),
        Figures(0.321, 1.428, 41.5, 5.7, 10.7),
        Figures(0.383, 1.568, 34.8, 4.8, 9),
    ),
    "susy": (
        Figures(1.678, 12.037, 974.3, 58.2, 64.9),
        Figures(7.972, 53.46, 205.1, 12.2, 13.7),
        Figures(13.39, 55.38, 122.1, 7.3, 8.1),
        Figures(20.093, 57.68, 81.4, 4.9, 5.4),
    ),
    "higgs": (
        Figures(5.488, 45.25, 406.3, 38.4, 55.3),
        Figures(26.558, 132.46, 84, 7.9, 11.4),
        Figures(43.17, 165.34, 51.7, 4.9, 7),
        Figures(65.579, 171.16, 34, 3.2, 4.6),
    ),
    "optdigits": (
        Figures(0.011, 0.174, 68.4, 9.6, 16.1),
        Figures(0.015, 0.181, 50.1, 7.1, 11.8),
        Figures(0.029, 0.191, 25.9, 3.7, 6.1),
        Figures(0.043, 0.196, 17.5, 2.5, 4.1),
    ),
    "pendigits": (
        Figures(0.014, 0.181, 41, 9.4, 13.1),
        Figures(0.026, 0.224, 22.1, 5, 7),
        Figures(0.042, 0.234, 13.7, 3.1, 4.4),
        Figures(0.053, 0.235, 10.8, 2.5, 3.5),
    ),
    "letter": (
        Figures(0.016, 0.102, 73.2, 12.7, 14.5),
        Figures(0.04, 0.167, 29.3, 5.1, 5.8),
        Figures(0.067, 0.187, 17.5, 3, 3.5),
        Figures(0.128, 0.201, 9.1, 1.6, 1.8),
    ),
    "covtype": (
        Figures(0.29, 1.321, 220.4, 15.8, 21.2),
        Figures(0.639, 6.391, 100, 7.2, 9.6),
        Figures(1.095, 7.765, 58.4, 4.2, 5.6),
        Figures(1.724, 8.088, 37.1, 2.7, 3.6),
    ),
    "abalone": (
        Figures(0.027, 0.331, 6.9, 3.6, 19.7),
        Figures(0.032, 0.356, 5.8, 3.1, 16.7),
        Figures(0.049, 0.338, 3.8, 2, 10.9),
        Figures(0.055, 0.366, 3.4, 1.8, 9.7),
    ),
    "wine_quality": (
        Figures(0.017, 0.239, 12.4, 5.3, 50.5),
        Figures(0.027, 0.262, 7.8, 3.3, 31.8),
        Figures(0.041, 0.282, 5.1, 2.2, 20.9),
        Figures(0.051, 0.276, 4.1, 1.8, 16.8),
    ),
}
REMOVING = {
    "adult": (
        Figures(0.034, 0.217, 278.4, 15.2, 45.1),
        Figures(0.103, 0.751, 91.9, 5, 14.9),
        Figures(0.222, 1.059, 42.6, 2.3, 6.9),
        Figures(0.379, 1.276, 25, 1.4, 4),
    ),
    "credit_info": (
        Figures(0.055, 0.113, 242.1, 33.4, 62.7),
        Figures(0.153, 0.426, 87, 12, 22.5),
        Figures(0.251, 0.824, 53, 7.3, 13.7),
        Figures(0.355, 1.065, 37.5, 5.2, 9.7),
    ),
    "susy": (
        Figures(1.303, 1.707, 1254.7, 74.9, 83.6),
        Figures(6.263, 23.999, 261, 15.6, 17.4),
        Figures(15.438, 53.962, 105.9, 6.3, 7.1),
        Figures(25.98, 77.76, 62.9, 3.8, 4.2),
    ),
    "higgs": (
        Figures(3.367, 4.967, 662.3, 62.7, 90.2),
        Figures(18.926, 55.265, 117.8, 11.1, 16),
        Figures(48.683, 152.095, 45.8, 4.3, 6.2),
        Figures(80.776, 251.224, 27.6, 2.6, 3.8),
    ),
    "optdigits": (
        Figures(0.01, 0.015, 75.2, 10.6, 17.7),
        Figures(0.014, 0.032, 53.7, 7.6, 12.6),
        Figures(0.029, 0.067, 25.9, 3.7, 6.1),
        Figures(0.046, 0.085, 16.3, 2.3, 3.8),
    ),
    "pendigits": (
        Figures(0.015, 0.013, 38.3, 8.7, 12.2),
        Figures(0.025, 0.022, 23, 5.2, 7.3),
        Figures(0.041, 0.089, 14, 3.2, 4.5),
        Figures(0.057, 0.129, 10.1, 2.3, 3.2),
    ),
    "letter": (
        Figures(0.014, 0.017, 83.6, 14.5, 16.6),
        Figures(0.058, 0.032, 20.2, 3.5, 4),
        Figures(0.103, 0.066, 11.4, 2, 2.3),
        Figures(0.134, 0.094, 8.7, 1.5, 1.7),
    ),
    "covtype": (
        Figures(0.161, 0.562, 397, 28.5, 38.1),
        Figures(0.546, 3.44, 117.1, 8.4, 11.2),
        Figures(1.187, 5.519, 53.8, 3.9, 5.2),
        Figures(1.963, 6.917, 32.6, 2.3, 3.1),
    ),
    "abalone": (
        Figures(0.026, 0.069, 7.2, 3.8, 20.5),
        Figures(0.029, 0.263, 6.4, 3.4, 18.4),
        Figures(0.054, 0.372, 3.4, 1.8, 9.9),
        Figures(0.049, 0.417, 3.8, 2, 10.9),
    ),
    "wine_quality": (
        Figures(0.016, 0.022, 13.1, 5.6, 53.6),
        Figures(0.024, 0.196, 8.8, 3.8, 35.8),
        Figures(0.037, 0.298, 5.7, 2.4, 23.2),
        Figures(0.051, 0.333, 4.1, 1.8, 16.8),
    ),
}
PAPER = {"add": ADDING, "remove": REMOVING}
