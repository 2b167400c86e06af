"""The data sets of benchmarks and experiments, as the same float32 arrays for every library."""

from datasets.dataset import DataNotFoundError, Dataset, Target, Task
from datasets.made import MADE, higgs_shaped
from datasets.reading import FOLDER_VARIABLE, ROOT, load, load_in_order, path_of
from datasets.sources import SOURCES, STREAMS, names_of

__all__ = [
    "FOLDER_VARIABLE",
    "MADE",
    "ROOT",
    "SOURCES",
    "STREAMS",
    "DataNotFoundError",
    "Dataset",
    "Target",
    "Task",
    "higgs_shaped",
    "load",
    "load_in_order",
    "names_of",
    "path_of",
]
