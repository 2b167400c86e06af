"""The data sets of benchmarks and experiments, as float32 tables."""

from datasets.coded import CODED, CodedDataset, load_coded
from datasets.dataset import (
    AnyDataset,
    DataNotFoundError,
    Dataset,
    SparseDataset,
    Table,
    Target,
    Task,
)
from datasets.made import MADE, SKEWED, SkewedDataset, higgs_shaped, skewed
from datasets.reading import FOLDER_VARIABLE, ROOT, load, load_in_order, path_of
from datasets.sources import SOURCES, STREAMS, names_of
from datasets.sparse import SPARSE, load_sparse, load_sparse_in_order, sparse_path_of

__all__ = [
    "CODED",
    "FOLDER_VARIABLE",
    "MADE",
    "ROOT",
    "SKEWED",
    "SOURCES",
    "SPARSE",
    "STREAMS",
    "AnyDataset",
    "CodedDataset",
    "DataNotFoundError",
    "Dataset",
    "SkewedDataset",
    "SparseDataset",
    "Table",
    "Target",
    "Task",
    "higgs_shaped",
    "load",
    "load_coded",
    "load_in_order",
    "load_sparse",
    "load_sparse_in_order",
    "names_of",
    "path_of",
    "skewed",
    "sparse_path_of",
]
