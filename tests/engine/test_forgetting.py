"""What is left of a removed row in the bytes of a model: nothing.

What is left in memory is looked for in `tests/erasure`.
"""

from __future__ import annotations

import numpy as np
import pytest
from graftboost._engine import Forest

from graftboost.persistence.model_file import pack_forest

from .making import LOSSES, Data, fit_forest, make_data, update_forest

ROW = 17


def remove(forest: Forest, data: Data, *ids: int, tolerance: float = 1.0) -> None:
    nothing = data.take(np.arange(0))
    update_forest(forest, nothing, np.array(ids, dtype=np.int64), tolerance=tolerance)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tolerance", [0.0, 1e12])
@pytest.mark.parametrize("others", [(), (3, 40, 118)])
def test_bytes_of_a_model_show_no_removed_row(
    loss: str, tolerance: float, others: tuple[int, ...]
) -> None:
    data = make_data(0, loss, weighted=True)
    rng = np.random.default_rng(0)
    data = Data(
        rng.normal(size=(120, 12)), data.y, data.weight, data.ids, (0,) * 12, loss
    )  # twelve bytes a row are as good as a name
    data.ids[ROW] = 0x0123_4567_89AB_CDEF
    data.weight[ROW] = 1.2345678901
    if loss == "squared":
        data.y[ROW] = 12.345678901
    forest = fit_forest(data, n_estimators=8)
    traces = {
        "id": data.ids[ROW].tobytes(),
        "weight": data.weight[ROW].tobytes(),
        "codes": forest.bins.encode(data.X[[ROW]]).astype(np.uint8).tobytes(),
    }
    if loss == "squared":
        traces["target"] = data.y[ROW].tobytes()
    for t in range(forest.n_trees):
        recorded = forest.recorded(t)
        if np.count_nonzero(recorded == recorded[ROW]) == 1:
            traces[f"gradient in tree {t}"] = recorded[[ROW - 1, ROW]].tobytes()
    assert len(traces) >= 4
    before = pack_forest(forest)
    assert [name for name, trace in traces.items() if trace not in before] == []
    remove(forest, data, int(data.ids[ROW]), *data.ids[list(others)].tolist(), tolerance=tolerance)
    after = pack_forest(forest)
    assert [name for name, trace in traces.items() if trace in after] == []


def test_bytes_of_a_model_show_no_row_that_came_and_went() -> None:
    data = make_data(0, "squared", weighted=True)
    forest = fit_forest(data.take(np.arange(100)))
    added = data.take(np.arange(100, 120))
    added.ids[7] = 0x0123_4567_89AB_CDEF
    update_forest(forest, added, np.empty(0, dtype=np.int64))
    traces = [added.ids[7].tobytes(), added.y[7].tobytes(), added.weight[7].tobytes()]
    assert all(trace in pack_forest(forest) for trace in traces)
    remove(forest, data, int(added.ids[7]))
    assert not any(trace in pack_forest(forest) for trace in traces)
