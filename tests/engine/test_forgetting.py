"""The bytes of a model contain nothing of removed rows.

The tests in `tests/erasure` search the memory of the process.
"""

from __future__ import annotations

import numpy as np
import pytest
from graftboost._engine import EngineModel

from graftboost.persistence.model_file import pack_engine_model

from .making import LOSSES, Data, fit_engine_model, make_data, update_engine_model

ROW = 17


def remove(engine_model: EngineModel, data: Data, *ids: int, tolerance: float = 1.0) -> None:
    nothing = data.take(np.arange(0))
    update_engine_model(engine_model, nothing, np.array(ids, dtype=np.int64), tolerance=tolerance)


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
    )  # twelve bytes identify a row
    data.ids[ROW] = 0x0123_4567_89AB_CDEF
    data.weight[ROW] = 1.2345678901
    if loss == "squared":
        data.y[ROW] = 12.345678901
    engine_model = fit_engine_model(data, n_estimators=8)
    traces = {
        "id": data.ids[ROW].tobytes(),
        "weight": data.weight[ROW].tobytes(),
        "codes": engine_model.bins.encode(data.X[[ROW]]).astype(np.uint8).tobytes(),
    }
    if loss == "squared":
        traces["target"] = data.y[ROW].tobytes()
    for t in range(engine_model.n_trees):
        recorded = engine_model.recorded(t)
        if np.count_nonzero(recorded == recorded[ROW]) == 1:
            # Eight bytes, which are nowhere by chance: the gradients of two rows or of four.
            run = recorded[ROW - 1 : ROW + 1] if loss == "squared" else recorded[ROW - 3 : ROW + 1]
            stored = run.astype(np.int32 if loss == "squared" else np.int16)
            traces[f"gradient in tree {t}"] = stored.tobytes()
    assert len(traces) >= 4
    before = pack_engine_model(engine_model)
    assert [name for name, trace in traces.items() if trace not in before] == []
    remove(
        engine_model,
        data,
        int(data.ids[ROW]),
        *data.ids[list(others)].tolist(),
        tolerance=tolerance,
    )
    after = pack_engine_model(engine_model)
    assert [name for name, trace in traces.items() if trace in after] == []


def test_bytes_of_a_model_show_no_row_that_was_added_and_removed() -> None:
    data = make_data(0, "squared", weighted=True)
    engine_model = fit_engine_model(data.take(np.arange(100)))
    added = data.take(np.arange(100, 120))
    added.ids[7] = 0x0123_4567_89AB_CDEF
    update_engine_model(engine_model, added, np.empty(0, dtype=np.int64))
    traces = [added.ids[7].tobytes(), added.y[7].tobytes(), added.weight[7].tobytes()]
    assert all(trace in pack_engine_model(engine_model) for trace in traces)
    remove(engine_model, data, int(added.ids[7]))
    assert not any(trace in pack_engine_model(engine_model) for trace in traces)
