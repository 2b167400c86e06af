"""The same columns of several kinds as an array and as frames of each library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from graftboost.input.columns import Columns
from graftboost.input.table import read_table

COLOURS = ["red", "green", None, "blue"]


def encode(X, categorical_features="from_dtype"):
    table = read_table(X)
    return Columns.learn(table, categorical_features).encode(table)


def mixed_columns(rng, n_rows=200):
    """Columns by kind, and a target that needs all of them."""
    columns = {
        "single": rng.normal(size=n_rows).astype(np.float32),
        "double": rng.normal(size=n_rows),
        "whole": rng.integers(-5, 5, size=n_rows),
        "flag": rng.random(n_rows) < 0.5,
        "colour": [COLOURS[k] for k in rng.integers(0, 4, size=n_rows)],
    }
    columns["double"][::9] = np.nan
    y = columns["whole"] + 4 * (np.array(columns["colour"]) == "red") + columns["flag"]
    return columns, y


def frames_of(columns):
    """The same columns as frames of each library, `colour` as a category."""
    polars = pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical))
    pandas = pd.DataFrame(columns).astype({"colour": "category"})
    arrow = pa.table(columns)
    place = arrow.schema.get_field_index("colour")
    arrow = arrow.set_column(place, "colour", arrow["colour"].dictionary_encode())
    return {"pandas": pandas, "polars": polars, "pyarrow": arrow}


def array_of(columns):
    """The same columns as an array, with the categories numbered as fit sorts them."""
    codes = {"blue": 0.0, "green": 1.0, "red": 2.0, None: np.nan}
    colour = [codes[value] for value in columns["colour"]]
    return np.column_stack(
        [columns["single"], columns["double"], columns["whole"], columns["flag"], colour]
    )
