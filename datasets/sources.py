"""The registry of data sets: their sources, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass

from datasets.dataset import Task


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org.

    The copy on OpenML may differ from the file. It has no official split, so its rows are split at
    random. ``rows`` is checked, because versions of the same name differ in content.
    """

    name: str
    version: int
    rows: int
    complete: bool = False  # drop rows with missing values, as the file does


@dataclass(frozen=True)
class Source:
    """How one table becomes a `Dataset`.

    A ``split`` column contains the official split. Without it, the rows are split at random, always
    in the same way, and ``test_share`` of them are test rows.
    """

    task: Task
    dropped: tuple[str, ...] = ()  # columns that determine the target, or are no feature
    test_share: float = 0.3
    openml: OpenML | None = None


# Data sets of the benchmarks.
SOURCES = {
    "adult": Source("classification", openml=OpenML("adult", 2, 48_842, complete=True)),
    "credit_info": Source("classification", openml=OpenML("GiveMeSomeCredit", 1, 150_000)),
    "electricity": Source("classification", openml=OpenML("electricity", 1, 45_312)),
    "higgs_sample": Source(
        "classification",
        dropped=("part",),  # the piece that a row was stored in
        openml=OpenML("higgs", 2, 98_050),  # another part of HIGGS, four times as many rows
    ),
    "letter": Source("classification", openml=OpenML("letter", 1, 20_000)),
    "pendigits": Source("classification", openml=OpenML("pendigits", 1, 10_992)),
    "optdigits": Source("classification", openml=OpenML("optdigits", 1, 5_620)),
    "flights_3m": Source("classification", dropped=("delay",), test_share=0.5),
    "covtype": Source("classification", test_share=0.5, openml=OpenML("covertype", 4, 581_012)),
    "california_housing": Source("regression", openml=OpenML("california_housing", 1, 20_640)),
    "bike_sharing": Source(
        "regression",
        dropped=("casual", "registered"),  # their sum is the target
        openml=OpenML("Bike_Sharing_Demand", 2, 17_379),
    ),
    "diamonds": Source("regression", openml=OpenML("diamonds", 1, 53_940)),
    "abalone": Source("regression", openml=OpenML("abalone", 1, 4_177)),
    # OpenML's copy lacks the colour of the wine: 11 features, not 12.
    "wine_quality": Source("regression", openml=OpenML("wine_quality", 1, 6_497)),
}

# Data sets that are only read in order of time.
STREAMS = {
    "metro_traffic": Source("regression"),
    "appliances_energy": Source("regression"),
    "household_power": Source("regression", dropped=("Global_intensity_dA",)),
    # The other temperatures are near copies of the target.
    "global_temperatures": Source(
        "regression",
        dropped=(
            "LandAverageTemperatureUncertainty",
            "LandMaxTemperature",
            "LandMaxTemperatureUncertainty",
            "LandMinTemperature",
            "LandMinTemperatureUncertainty",
            "LandAndOceanAverageTemperature",
            "LandAndOceanAverageTemperatureUncertainty",
        ),
    ),
    "web_traffic": Source("regression"),
}


def names_of(task: Task) -> list[str]:
    """Names of the data sets with this task that the benchmarks fit."""
    return [name for name, source in SOURCES.items() if source.task == task]


def source_of(name: str) -> Source:
    """Source of a data set; raises ValueError for an unknown name."""
    known = {**SOURCES, **STREAMS}
    if name not in known:
        raise ValueError(f"data set {name!r} is not one of {', '.join(known)}")
    return known[name]
