"""Search the memory of this process for values, without leaving copies of them there.

A test that searched memory for a value would find its own copy of it. So a `Secret` is kept as two
random-looking halves, whose xor is the value, and the value itself is written only into the arrays
that the test plants it in, and later overwrites.
"""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

CHUNK = 1 << 20
LONGEST = 64  # bytes of a secret


class Secret:
    """A value of some bytes that is not stored in one piece.

    Parameters
    ----------
    key, masked : ndarray of uint8
        Two halves, of the same length; the xor of them is the value.
    step : int
        The value is searched at addresses that are multiples of this: 1, 4 or 8.
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
        """Whether the value may be in memory by chance: one in ten thousand of four bytes is."""
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
            shift: secret.masked_by(np.resize(np.roll(mask, -shift), len(secret)))
            for shift in range(0, 4, min(secret.step, 4))
        }

    def count(self, content: np.ndarray) -> int:
        """Return how often it begins in these bytes, except in the last `LONGEST` of them."""
        found = 0
        for shift, pattern in self._patterns.items():
            words = content[shift : shift + len(content) - LONGEST].view("<u4")
            equal = words == pattern[:4].view("<u4")
            if not equal.any():
                continue
            for place in 4 * np.flatnonzero(equal) + shift:
                if place % self._secret.step == 0:
                    there = content[place : place + len(pattern)]
                    found += bool(np.array_equal(there, pattern))
        return found


def _random(n_bytes: int) -> np.ndarray:
    return np.frombuffer(secrets.token_bytes(n_bytes), dtype=np.uint8).copy()


def count_in_memory(wanted: Mapping[str, Secret], also: Path | None = None) -> dict[str, int]:
    """Return how often each secret is in the memory of this process.

    This searches the heap and all other allocated memory, and the pages of the file `also` if it is
    mapped, but not the stack of the main thread.
    """
    found = dict.fromkeys(wanted, 0)
    mask = _random(4)
    searches = {name: Search(secret, mask) for name, secret in wanted.items()}
    content = np.zeros(CHUNK + LONGEST, dtype=np.uint8)
    for chunk in _chunks(content, also):
        words = chunk.view("<u4")
        np.bitwise_xor(words, mask.view("<u4"), out=words)
        for name, search in searches.items():
            found[name] += search.count(chunk)
    return found


def _chunks(content: np.ndarray, also: Path | None) -> Iterator[np.ndarray]:
    """Read memory in chunks, each of which ends with the beginning of the next one, or zeros.

    `content`, into which all are read, is itself skipped, and overwritten at the end.
    """
    own = range(content.ctypes.data, content.ctypes.data + content.nbytes)
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for begin, end in _spans(also):
            for at in range(begin, end, CHUNK):
                size = min(end - at, len(content))
                content[:] = 0
                memory.seek(at)
                try:
                    memory.readinto(memoryview(content)[:size])
                except OSError:
                    continue  # a page that cannot be read
                overlap = range(max(own.start, at), min(own.stop, at + size))
                if overlap:
                    content[overlap.start - at : overlap.stop - at] = 0
                yield content[: min(end - at, CHUNK) + LONGEST]
    content[:] = 0


def _spans(also: Path | None) -> Iterator[tuple[int, int]]:
    """Find memory that was written to; much allocated memory never is."""
    names = {"", "[heap]", str(also)}
    page = mmap.PAGESIZE
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, _, _, _, *name = line.split(maxsplit=5)
            if not rights.startswith("rw") or "".join(name) not in names:
                continue
            begin, end = (int(address, 16) for address in span.split("-"))
            pages.seek(begin // page * 8)
            entries = np.frombuffer(pages.read((end - begin) // page * 8), dtype="<u8")
            # The two upper bits are set if a page is in memory or was swapped out.
            used = np.concatenate([[0], entries >> np.uint64(62) != 0, [0]]).astype(np.int8)
            first, last = np.flatnonzero(np.diff(used) > 0), np.flatnonzero(np.diff(used) < 0)
            yield from zip(
                (begin + page * first).tolist(), (begin + page * last).tolist(), strict=True
            )
