"""Figures as JSON that is small and that shows in a diff what changed: one measurement per line."""

from __future__ import annotations

import json
from typing import Any

DIGITS = 7  # significant; no page shows more than four
WIDTH = 1000  # characters of a line; longer ones are broken up, except for lists of numbers


def to_json(value: Any) -> str:
    """Write a value as JSON: on one line if it fits, otherwise with one item per line.

    Examples
    --------
    >>> to_json({"seconds": [1 / 3, 0.5], "refits": 0})
    '{"seconds": [0.3333333, 0.5], "refits": 0}'
    """
    return _written(_rounded(value), "")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def _written(value: Any, indent: str) -> str:
    text = json.dumps(value, allow_nan=False)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(text) <= WIDTH or not any(isinstance(item, dict | list) for item in items):
        return text
    inner = indent + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(name)}: {_written(v, inner)}" for name, v in value.items()]
        start, end = "{", "}"
    else:
        lines = [_written(item, inner) for item in value]
        start, end = "[", "]"
    return f"{start}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{end}"
