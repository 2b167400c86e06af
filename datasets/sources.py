"""The registry: where each data set comes from, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass

from datasets.dataset import Task


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org.

    A copy there need not be the file's twin. None brings the official split, so its rows are split
    at random; ``rows`` is held against what comes, since a name has versions of very different
    content.
    """

    name: str
    version: int
    rows: int
    complete: bool = False  # rows with a missing value are dropped, as they are in the file


@dataclass(frozen=True)
class Source:
    """How one table becomes a `Dataset`.

    A table with a ``split`` column brings its official split. Any other is split at random, always
    in the same way, and ``test_share`` of its rows are for the test.
    """

    task: Task
    dropped: tuple[str, ...] = ()  # columns that give the target away, or are no feature
    test_share: float = 0.3
    openml: OpenML | None = None


# What the benchmarks fit.
SOURCES = {
    "adult": Source("classification", openml=OpenML("adult", 2, 48_842, complete=True)),
    "credit_info": Source("classification", openml=OpenML("GiveMeSomeCredit", 1, 150_000)),
    "electricity": Source("classification", openml=OpenML("electricity", 1, 45_312)),
    "higgs_sample": Source(
        "classification",
        dropped=("part",),  # which piece a row came with
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
        dropped=("casual", "registered"),  # they add up to the target
        openml=OpenML("Bike_Sharing_Demand", 2, 17_379),
    ),
    "diamonds": Source("regression", openml=OpenML("diamonds", 1, 53_940)),
    "abalone": Source("regression", openml=OpenML("abalone", 1, 4_177)),
    # OpenML's copy does not say which wines are red: 11 features, not 12.
    "wine_quality": Source("regression", openml=OpenML("wine_quality", 1, 6_497)),
}

# What is read in the order of time only.
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
    """Source of a data set; raises ValueError for a name that there is not."""
    known = {**SOURCES, **STREAMS}
    if name not in known:
        raise ValueError(f"data set {name!r} is none of {', '.join(known)}")
    return known[name]
