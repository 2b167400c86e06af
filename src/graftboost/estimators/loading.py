"""Estimators from files."""

from __future__ import annotations

import os

from graftboost.estimators.classifier import GraftBoostClassifier
from graftboost.estimators.regressor import GraftBoostRegressor
from graftboost.persistence import file_format, model_file


def load(path: str | os.PathLike[str]) -> GraftBoostClassifier | GraftBoostRegressor:
    """Read a model from a file that `save` wrote.

    The file is mapped into memory: predicting reads no more of it than predicting needs. The rows
    and what they recorded are read, and checked, when the model is first updated. The file itself
    is never written to.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    GraftBoostClassifier or GraftBoostRegressor
        The model.

    Raises
    ------
    InvalidFileError
        If it is no such file, or is damaged, or was written by a newer version.
    """
    return restored(model_file.restore(found := file_format.load(path)), found.source)


def restored(saved: model_file.Saved, source: str) -> GraftBoostClassifier | GraftBoostRegressor:
    """Return the estimator that was saved; `source` is what errors call the file."""
    kinds = {kind.__name__: kind for kind in (GraftBoostClassifier, GraftBoostRegressor)}
    try:
        return kinds[saved.estimator]._restored(saved)
    except (TypeError, ValueError) as error:
        raise file_format.damaged(source, str(error)) from error
