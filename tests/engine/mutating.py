"""Mutations of valid files, and how they are used."""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
from graftboost._engine import EngineModel

from graftboost.persistence import file_format

from .making import Data, update_engine_model

ODD_NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 127, 255, 256, 2**15, 2**16, 2**31 - 1, -(2**31), 2**32, 2**53, 2**62),
    *(2**63 - 1, -(2**63), 1e308, -1e308, 1e-308, 0.5, None, True, "", [], {}),
]
# Errors with which an invalid file may be refused.
REFUSALS = (ValueError, RuntimeError, TypeError, OverflowError, IndexError)


def n_mutations(usually: int) -> int:
    """Return how many mutations to try; the environment can set another number."""
    return int(os.environ.get("GRAFTBOOST_MUTATIONS", usually))


class Mutator:
    """Mutations of one file, each by its own number."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.header_size = struct.unpack_from("<Q", data, 16)[0]
        self.header: dict[str, Any] = json.loads(data[32 : 32 + self.header_size])

    def __call__(self, seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        data = bytearray(self.data)
        header = json.loads(json.dumps(self.header))
        kind = rng.integers(0, 8)
        if kind == 0:
            return bytes(data[: rng.integers(0, len(data))])
        if kind == 1:  # anywhere, with unchanged checksums
            for _ in range(rng.integers(1, 4)):
                data[rng.integers(0, len(data))] = rng.integers(0, 256)
            return bytes(data)
        if kind == 2:
            self._change_header(header, rng)
        elif kind == 3:
            self._change_table(header, rng)
        else:
            for _ in range(rng.integers(1, 4)):
                self._change_array(header, data, rng)
        return self._sealed(header, data)

    def _change_header(self, header: dict[str, Any], rng: np.random.Generator) -> None:
        engine_model = header["engine_model"]
        name = list(engine_model)[rng.integers(0, len(engine_model))]
        engine_model[name] = ODD_NUMBERS[rng.integers(0, len(ODD_NUMBERS))]

    def _change_table(self, header: dict[str, Any], rng: np.random.Generator) -> None:
        table = header["arrays"]
        names = list(table)
        one, other = (names[rng.integers(0, len(names))] for _ in range(2))
        match rng.integers(0, 4):
            case 0:
                del table[one]
            case 1:
                table[one], table[other] = table[other], table[one]
            case 2:
                table[one][rng.integers(0, 3)] = ODD_NUMBERS[rng.integers(0, len(ODD_NUMBERS))]
            case 3:
                table[one][2] = max(0, int(table[one][2]) + int(rng.integers(-2, 3)))

    def _change_array(
        self, header: dict[str, Any], data: bytearray, rng: np.random.Generator
    ) -> None:
        names = [name for name, entry in header["arrays"].items() if entry[2]]
        dtype, first, length, _ = header["arrays"][names[rng.integers(0, len(names))]]
        itemsize = np.dtype(dtype).itemsize
        array = np.frombuffer(data, dtype=np.uint8)[first : first + length * itemsize].view(dtype)
        place = rng.integers(0, length)
        match rng.integers(0, 4):
            case 0:
                array[place] = array[rng.integers(0, length)]
            case 1:
                array.view(np.uint8)[place * itemsize + rng.integers(0, itemsize)] ^= np.uint8(
                    1 << rng.integers(0, 8)
                )
            case 2:
                array.view(np.uint8)[place * itemsize :][:itemsize] = rng.integers(
                    0, 256, itemsize, dtype=np.uint8
                )
            case 3:
                odd = [n for n in ODD_NUMBERS if isinstance(n, int) and not isinstance(n, bool)]
                value = odd[rng.integers(0, len(odd))] & (256**itemsize - 1)
                array.view(np.uint8)[place * itemsize :][:itemsize] = np.frombuffer(
                    value.to_bytes(itemsize, "little"), dtype=np.uint8
                )

    def _sealed(self, header: dict[str, Any], data: bytearray) -> bytes:
        """Make the checksums valid, so that the content is read."""
        for entry in header["arrays"].values():
            if (
                all(isinstance(number, int) for number in entry[1:3])
                and entry[0] in file_format.DTYPES
            ):
                first, size = entry[1], entry[2] * np.dtype(entry[0]).itemsize
                if first >= 0 and 0 <= size <= len(data):
                    entry[3] = f"{zlib.crc32(data[first : first + size]):08x}"
        text = json.dumps(header, separators=(",", ":")).encode()
        if len(text) > self.header_size:
            return bytes(data[: len(data) // 2])
        text = text.ljust(self.header_size)
        data[32 : 32 + self.header_size] = text
        struct.pack_into("<I", data, 12, zlib.crc32(text))
        return bytes(data)


def change(engine_model: EngineModel, added: Data, seed: int, tolerance: float = 1.0) -> None:
    """Change a model, which may be invalid, in every way."""
    added = replace(added, ids=10**6 + np.arange(len(added.ids)))
    removed = np.random.default_rng(seed).choice(engine_model.row_ids, 4, replace=False)
    update_engine_model(engine_model, added, removed, tolerance=tolerance)
    nothing = replace(added, ids=added.ids[:0])
    update_engine_model(engine_model, nothing, added.ids[:2], "fidelity", 0.0, regrow=False)
    engine_model.pending(0.85, 0.0, 1)
    engine_model.regrow(0.5, 0.85, 0.0, 1)
    engine_model.regrow(np.inf, 0.5, 0.0, 1)
    engine_model.refresh(1)
    engine_model.splits(0)
    engine_model.refit(1)
    engine_model.check_state(1)
