"""Markdown tables, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells under a head.

    Examples
    --------
    >>> print(table(["data set", "rows"], [["adult", "30162"]]))
    | data set | rows |
    | --- | --- |
    | adult | 30162 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def listed(words: Iterable[str]) -> str:
    """Words as in "a, b and c".

    Examples
    --------
    >>> listed(["adult", "letter", "covtype"])
    'adult, letter and covtype'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def in_seconds(value: float) -> str:
    """Three digits, in seconds or milliseconds."""
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.3g} s" if value >= 0.1 else f"{1000 * value:.3g} ms"


def in_bytes(value: float) -> str:
    """In gigabytes, megabytes or kilobytes."""
    if value < 1e6:
        return f"{value / 1e3:.0f} kB"
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def in_percent(value: float) -> str:
    """Fraction as a percentage."""
    return f"{100 * value:.2f}%"


def four_digits(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"
