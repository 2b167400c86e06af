"""The paper's test errors, in the order of `datasets.paper.SETS`.

Its table gives the squared errors of Abalone in hundredths and those of WineQuality in thousandths.
With targets scaled to [0, 1] they can only be the other way round: a model that always predicts the
mean has 0.013 on Abalone and 0.021 on WineQuality. So they are read here.
"""

from __future__ import annotations

from datasets.paper import SETS

UNITS = {"abalone": 1e-3, "wine_quality": 1e-2}

TRAINED = {
    "graftboost": (0.1276, 0.0629, 0.1987, 0.2742, 0.0307, 0.0294, 0.0418, 0.1702, 5.7721, 1.2085),
    "lightgbm": (0.1277, 0.0635, 0.1984, 0.2725, 0.0334, 0.0355, 0.0374, 0.1688, 5.8392, 1.1993),
    "xgboost": (0.1270, 0.0630, 0.1977, 0.2761, 0.0418, 0.0397, 0.0524, 0.1896, 6.1472, 1.1674),
    "catboost": (0.2928, 0.1772, 0.4324, 0.5384, 0.0618, 0.0440, 0.0655, 0.1572, 5.7265, 1.2457),
}
ADDED = {
    "1 row": (0.1275, 0.0630, 0.1988, 0.2742, 0.0295, 0.0297, 0.0404, 0.1685, 5.811, 1.2079),
    "0.1%": (0.1269, 0.0626, 0.1989, 0.2747, 0.0295, 0.0297, 0.0406, 0.1686, 5.900, 1.2040),
    "0.5%": (0.1294, 0.0632, 0.1988, 0.2734, 0.0290, 0.0295, 0.0394, 0.1681, 5.7701, 1.2198),
    "1%": (0.1267, 0.0632, 0.1990, 0.2740, 0.0262, 0.0283, 0.0440, 0.1683, 5.8378, 1.2209),
}
REMOVED = {
    "1 row": (0.1276, 0.0628, 0.1987, 0.2742, 0.0306, 0.0295, 0.0416, 0.1702, 5.8723, 1.2143),
    "0.1%": (0.1284, 0.0633, 0.1988, 0.2747, 0.0295, 0.0283, 0.0432, 0.1712, 5.8744, 1.2109),
    "0.5%": (0.1295, 0.0634, 0.1988, 0.2746, 0.0301, 0.0303, 0.0432, 0.1675, 5.7733, 1.2052),
    "1%": (0.1295, 0.0632, 0.1987, 0.2747, 0.0273, 0.0303, 0.0424, 0.1695, 5.7620, 1.2111),
}


def trained(library: str, name: str) -> float | None:
    """The paper's error of a library after training, None if it has none."""
    return _read(TRAINED[library], name) if library in TRAINED else None


def updated(way: str, share: str, name: str) -> float:
    """The paper's error of its own model after an update."""
    return _read((ADDED if way == "add" else REMOVED)[share], name)


def _read(row: tuple[float, ...], name: str) -> float:
    return row[list(SETS).index(name)] * UNITS.get(name, 1.0)
