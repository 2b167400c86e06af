"""Read estimators from files."""

from __future__ import annotations

import os

from graftboost.estimators.classifier import GraftBoostClassifier
from graftboost.estimators.regressor import GraftBoostRegressor
from graftboost.persistence import file_format, model_file


def load(path: str | os.PathLike[str]) -> GraftBoostClassifier | GraftBoostRegressor:
    """Read a model from a file written by `save`.

    The file is mapped into memory. Predictions read only the trees. The rows and their recorded
    gradients are read and checked before the first update. The file itself is never modified.

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
        If the file is not a model, is damaged, or was written by a newer version.
    """
    return restored(model_file.restore(found := file_format.load(path)), found.source)


def restored(saved: model_file.Saved, source: str) -> GraftBoostClassifier | GraftBoostRegressor:
    """Return the estimator for the content of a file; error messages call the file `source`."""
    kinds = {kind.__name__: kind for kind in (GraftBoostClassifier, GraftBoostRegressor)}
    try:
        return kinds[saved.estimator]._restored(saved)
    except (TypeError, ValueError) as error:
        raise file_format.damaged(source, str(error)) from error
