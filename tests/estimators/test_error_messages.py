"""Error messages do not quote the values of rows."""

import numpy as np
import pandas as pd
import pytest

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .refused_calls import FRAME, X, Y


@pytest.mark.parametrize(
    "call",
    [
        lambda: GraftBoostRegressor().fit(FRAME.assign(b=["Anna"] * 60), Y),
        lambda: GraftBoostRegressor().fit(X, ["Anna"] * 60),
        lambda: GraftBoostRegressor().fit(X, Y).add(X[:1], ["Anna"]),
        lambda: (
            GraftBoostRegressor()
            .fit(pd.DataFrame({"c": pd.Categorical(["Anna", "Bela"] * 30)}), Y)
            .predict(pd.DataFrame({"c": np.ones(3)}))
        ),
        lambda: GraftBoostClassifier().fit(X, ["Anna", "Bela"] * 30).add(X[:1], [1]),
    ],
)
def test_errors_do_not_quote_rows(call):
    with pytest.raises(ValueError, match="contains") as caught:
        call()
    assert "Anna" not in str(caught.value)
