"""Conditions on attributes: ``customer == 17 and region in ("north", "west")``."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
HOW = (
    "Compare columns with numbers or text by ==, !=, <, <=, >, >= or in, and combine comparisons "
    "with and, or, not and parentheses."
)


def where(condition: str, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return for which rows a condition is true.

    The condition is parsed with Python's grammar but not executed; only comparisons of columns with
    numbers and text are supported. As in SQL, neither a comparison with a missing value nor its
    negation is true.

    Parameters
    ----------
    condition : str
        The condition.
    columns : mapping of str to ndarray
        The columns by name. A name that is not a Python identifier is written in backticks.

    Returns
    -------
    ndarray of bool
        One value per row.

    Raises
    ------
    ValueError
        If the condition is not supported, or names an unknown column.

    Examples
    --------
    >>> columns = {"customer": np.array([17, 4, 17]), "age": np.array([30, 41, 52])}
    >>> where("customer == 17 and not age < 40", columns)
    array([False, False,  True])
    """
    text, names = _without_backticks(condition, columns)
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise ValueError(f"The condition {condition!r} is not valid. {HOW}") from error
    n_rows = len(next(iter(columns.values()))) if columns else 0
    return _Reader(condition, columns, names, n_rows).truth(tree).holds


def _without_backticks(
    condition: str, columns: Mapping[str, NDArray[Any]]
) -> tuple[str, dict[str, str]]:
    names = {name: name for name in columns}
    parts = condition.split("`")
    for i in range(1, len(parts), 2):
        stand_in = f"__column_{i}"
        names[stand_in] = parts[i]
        parts[i] = stand_in
    return "".join(parts).strip(), names


@dataclass(frozen=True)
class _Truth:
    """For which rows a condition is true and for which false; neither for missing values."""

    holds: NDArray[np.bool_]
    fails: NDArray[np.bool_]

    def __and__(self, other: _Truth) -> _Truth:
        return _Truth(self.holds & other.holds, self.fails | other.fails)

    def __or__(self, other: _Truth) -> _Truth:
        return _Truth(self.holds | other.holds, self.fails & other.fails)

    def __invert__(self) -> _Truth:
        return _Truth(self.fails, self.holds)


class _Reader:
    def __init__(
        self,
        condition: str,
        columns: Mapping[str, NDArray[Any]],
        names: dict[str, str],
        n_rows: int,
    ) -> None:
        self.condition, self.columns, self.names, self.n_rows = condition, columns, names, n_rows

    def truth(self, node: ast.expr) -> _Truth:
        match node:
            case ast.BoolOp(op=how, values=values):
                join = operator.and_ if isinstance(how, ast.And) else operator.or_
                return functools.reduce(join, map(self.truth, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.truth(operand)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                sides = [left, *comparators]
                pairs = zip(sides, ops, comparators, strict=False)
                return functools.reduce(operator.and_, (self.compare(*pair) for pair in pairs))
        raise self.unclear(node)

    def compare(self, one: ast.expr, op: ast.cmpop, other: ast.expr) -> _Truth:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(other, ast.List | ast.Tuple | ast.Set) or not other.elts:
                raise self.unclear(other)
            equal = (self.compare(one, ast.Eq(), item) for item in other.elts)
            found = functools.reduce(operator.or_, equal)
            return ~found if isinstance(op, ast.NotIn) else found
        if type(op) not in COMPARISONS:
            raise self.unclear(one)
        left, right = self.value(one), self.value(other)
        if self.is_text(left) != self.is_text(right):
            raise ValueError(
                f"The condition {self.condition!r} compares text with numbers: "
                f"{ast.unparse(one)} and {ast.unparse(other)}. Write text in quotes and numbers "
                "without."
            )
        return self.compared(left, right, COMPARISONS[type(op)])

    def compared(self, left: Any, right: Any, compare: Callable[[Any, Any], Any]) -> _Truth:
        lefts, rights = self.spread(left), self.spread(right)
        known = ~(self.missing(lefts) | self.missing(rights))
        holds = np.zeros(self.n_rows, dtype=bool)
        holds[known] = np.asarray(compare(lefts[known], rights[known]), dtype=bool)
        return _Truth(holds, known & ~holds)

    def spread(self, value: Any) -> NDArray[Any]:
        """Return one value per row."""
        if isinstance(value, np.ndarray):
            return value
        kind = object if isinstance(value, str) else None
        return np.full(self.n_rows, value, dtype=kind)

    @staticmethod
    def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
        if values.dtype == object:
            return np.array([value is None for value in values], dtype=bool)
        return np.asarray(np.isnan(values), dtype=bool)

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                column = self.names.get(name, name)
                if column not in self.columns:
                    raise ValueError(
                        f"The condition {self.condition!r} names {column!r}, which is not an "
                        f"attribute. The attributes are: {', '.join(self.columns) or 'none'}. "
                        "Write text in quotes."
                    )
                return self.columns[column]
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return self.checked(value, node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self.checked(-value, node)
        raise self.unclear(node)

    def checked(self, value: Any, node: ast.expr) -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise self.unclear(node)
        return value

    @staticmethod
    def is_text(value: Any) -> bool:
        return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)

    def unclear(self, node: ast.AST) -> ValueError:
        return ValueError(
            f"The condition {self.condition!r} contains {ast.unparse(node)!r}, which is not "
            f"supported. {HOW}"
        )
