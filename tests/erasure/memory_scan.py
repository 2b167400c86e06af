"""Search the memory of this process for values, without leaving copies of them there.

A test that searched memory for a value would find its own copy of it. So a `Secret` is kept as two
random-looking halves, whose xor is the value, and the value itself is written only into the arrays
that the test plants it in, and later overwrites.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .frozen_process import FrozenProcess, Mapping, freeze

CHUNK = 1 << 20
LONGEST = 64  # bytes of a secret
AROUND = 16  # bytes that are shown before a secret that was found, and after it


class Secret:
    """A value of some bytes that is not stored in one piece.

    Parameters
    ----------
    key, masked : ndarray of uint8
        Two halves, of the same length; the xor of them is the value.
    step : int
        The value is searched at addresses that are multiples of this: 1, 2, 4 or 8.
    """

    def __init__(self, key: np.ndarray, masked: np.ndarray, step: int) -> None:
        assert 4 <= len(key) == len(masked) <= LONGEST
        self._key = key
        self._masked = masked
        self._step = step

    @classmethod
    def draw(cls, n_bytes: int, high: int) -> Secret:
        """Draw a number of 4 or 8 bytes whose upper 16 bits are given: a float's exponent, say."""
        key = _random(n_bytes)
        masked = np.bitwise_xor(key, _random(n_bytes))
        masked[-2:] = key[-2:] ^ np.array([high], dtype="<u2").view(np.uint8)
        return cls(key, masked, n_bytes)

    @classmethod
    def hide(cls, values: np.ndarray, step: int | None = None) -> Secret:
        """Copy the present value of an array, which may be overwritten afterwards."""
        step = values.dtype.itemsize if step is None else step
        content = values.view(np.uint8)
        key = _random(len(content))
        return cls(key, np.bitwise_xor(content, key), step)

    def derive(self, shift: int, xor: int) -> Secret:
        """Return, for a number of four bytes, that number shifted to the left and changed."""
        halves = [half.view("<u4") << np.uint32(shift) for half in (self._key, self._masked)]
        halves[1] ^= np.uint32(xor)
        key, masked = (half.view(np.uint8) for half in halves)
        blind = _random(4)  # the halves of both secrets are in memory, and must not match
        return Secret(key ^ blind, masked ^ blind, self._step)

    @property
    def is_short(self) -> bool:
        """Whether memory may hold the value by chance.

        Numbers of four bytes are often small, like indices and counts. After many tests, memory
        holds one in twenty of all integer weights of a regression, and every one of them if it
        holds the row indices of a large model.
        """
        return len(self._key) == 4

    def find(self, values: np.ndarray) -> int:
        """Return the index of the value in an array; raises LookupError if it is not there once."""
        content = values.view(np.uint8).reshape(len(values), -1)
        places = np.flatnonzero((np.bitwise_xor(content, self._key) == self._masked).all(axis=1))
        if len(places) != 1:
            raise LookupError(f"the value is in {len(places)} places")
        return int(places[0])

    def write(self, into: np.ndarray) -> None:
        """Write the value into an array of its size."""
        np.bitwise_xor(self._key, self._masked, out=into.view(np.uint8))

    def masked_by(self, key: np.ndarray) -> np.ndarray:
        """Return the xor of the value and a key of the same length."""
        return (self._masked ^ key) ^ self._key

    @property
    def step(self) -> int:
        """The value is searched at addresses that are multiples of this."""
        return self._step

    def __len__(self) -> int:
        return len(self._key)


class Search:
    """A secret as it appears in bytes that are masked by a repeated pattern of four bytes.

    Parameters
    ----------
    secret : Secret
        The value to search for.
    mask : ndarray of uint8
        The four bytes.
    """

    def __init__(self, secret: Secret, mask: np.ndarray) -> None:
        self._secret = secret
        # The masked value depends on its position relative to the mask.
        self._patterns = {
            shift: secret.masked_by(_mask_from(mask, shift, len(secret)))
            for shift in range(0, 4, min(secret.step, 4))
        }

    def places(self, content: np.ndarray) -> Iterator[int]:
        """Find where it begins in these bytes, but for the last `LONGEST` of them."""
        for shift, pattern in self._patterns.items():
            words = content[shift : shift + len(content) - LONGEST].view("<u4")
            equal = words == pattern[:4].view("<u4")
            if not equal.any():
                continue
            for place in (4 * np.flatnonzero(equal) + shift).tolist():
                there = content[place : place + len(pattern)]
                if place % self._secret.step == 0 and np.array_equal(there, pattern):
                    yield place


@dataclass
class Place:
    """Where a secret was found.

    Attributes
    ----------
    mapping : Mapping
        The part of the address space.
    address : int
        Where it begins.
    is_short : bool
        See `Secret.is_short`.
    masked, mask : ndarray of uint8
        The bytes from `AROUND` before it to `AROUND` after it, which are unmasked only to be shown:
        a later search would find them.
    """

    mapping: Mapping
    address: int
    is_short: bool
    masked: np.ndarray
    mask: np.ndarray

    def __repr__(self) -> str:
        content = self.masked ^ _mask_from(self.mask, self.address - AROUND, len(self.masked))
        begin, end, name = self.mapping
        where = f"{self.address - begin:#x} of {end - begin:#x} bytes of {name or 'no name'}"
        return f"<{where}: {content.tobytes().hex(' ', -4)}>"


Found = dict[str, list[Place]]


def _random(n_bytes: int) -> np.ndarray:
    return np.frombuffer(secrets.token_bytes(n_bytes), dtype=np.uint8).copy()


def _mask_from(mask: np.ndarray, begin: int, n_bytes: int) -> np.ndarray:
    """Continue a mask of four bytes that is repeated, from some place on."""
    return np.resize(np.roll(mask, -(begin % 4)), n_bytes)


def find_in_memory(
    wanted: dict[str, Secret], also: Path | None = None, before: FrozenProcess | None = None
) -> Found:
    """Return where each secret is in the memory of this process.

    Searched are the heap and everything else that was allocated, the stacks of all threads, and the
    file `also` where it is mapped. With `before`, which was frozen when there were no such secrets
    yet, a value that was in the same place then does not count.
    """
    with freeze() as now:  # before anything is allocated here
        found: Found = {name: [] for name in wanted}
        mask = _random(4)
        searches = {name: Search(secret, mask) for name, secret in wanted.items()}
        for mapping, begin, chunk in _chunks(now, also):
            words = chunk.view("<u4")
            np.bitwise_xor(words, mask.view("<u4"), out=words)
            for name, search in searches.items():
                size, is_short = len(wanted[name]), wanted[name].is_short
                for place in search.places(chunk):
                    at, there = begin + place, chunk[place : place + size]
                    if before and np.array_equal(_read_masked(before, at, size, mask), there):
                        continue
                    around = _read_masked(now, at - AROUND, size + 2 * AROUND, mask)
                    found[name].append(Place(mapping, at, is_short, around, mask))
    return found


def count_in_memory(wanted: dict[str, Secret]) -> dict[str, int]:
    """Return how often each secret is in the memory of this process."""
    return {name: len(places) for name, places in find_in_memory(wanted).items()}


def _read_masked(
    process: FrozenProcess, address: int, n_bytes: int, mask: np.ndarray
) -> np.ndarray:
    """Return what is at an address, masked; an empty array if not all of it could be read."""
    content = np.zeros(n_bytes, dtype=np.uint8)
    is_read = process.read(address, content)
    np.bitwise_xor(content, _mask_from(mask, address, n_bytes), out=content)
    return content if is_read else content[:0]


def _chunks(process: FrozenProcess, also: Path | None) -> Iterator[tuple[Mapping, int, np.ndarray]]:
    """Read memory chunk by chunk; each has the beginning of the next one, or zeros, at its end.

    With each come its mapping and its address, which is a multiple of four. All are read into the
    same array, which is overwritten in the end.
    """
    content = np.zeros(CHUNK + LONGEST, dtype=np.uint8)
    for mapping in process.mappings():
        if mapping.name == str(also):
            spans = iter([(mapping.begin, mapping.end)])
        elif mapping.name in {"", "[heap]", "[stack]"}:
            spans = process.written(mapping)
        else:
            continue
        for begin, end in spans:
            for at in range(begin, end, CHUNK):
                size = min(end - at, len(content))
                content[size:] = 0
                assert process.read(at, content[:size]), f"cannot read {mapping}"
                yield mapping, at, content[: min(end - at, CHUNK) + LONGEST]
    content[:] = 0
