"""Rows by what is true of their attributes: ``customer == 17 and region in ("north", "west")``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
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
    "Compare columns with numbers or text by ==, !=, <, <=, >, >= or in, and join comparisons by "
    "and, or, not and parentheses."
)


def where(condition: str, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return which rows a condition holds for.

    Nothing is run: the condition is read by Python's grammar, and only comparisons of columns with
    numbers and text are understood.

    Parameters
    ----------
    condition : str
        What is to hold.
    columns : mapping of str to ndarray
        Columns, by name. A name that is no Python name is written in backticks.

    Returns
    -------
    ndarray of bool
        One for each row.

    Raises
    ------
    ValueError
        If it cannot be understood, or names no such column.

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
        raise ValueError(f"The condition {condition!r} cannot be read. {HOW}") from error
    n_rows = len(next(iter(columns.values()))) if columns else 0
    return _Reader(condition, columns, names, n_rows).truth(tree)


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


class _Reader:
    def __init__(
        self,
        condition: str,
        columns: Mapping[str, NDArray[Any]],
        names: dict[str, str],
        n_rows: int,
    ) -> None:
        self.condition, self.columns, self.names, self.n_rows = condition, columns, names, n_rows

    def truth(self, node: ast.expr) -> NDArray[np.bool_]:
        match node:
            case ast.BoolOp(op=how, values=values):
                join = np.logical_and if isinstance(how, ast.And) else np.logical_or
                return np.asarray(join.reduce([self.truth(value) for value in values]), dtype=bool)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.truth(operand)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                sides = [left, *comparators]
                holds = np.ones(self.n_rows, dtype=bool)
                for one, op, other in zip(sides, ops, comparators, strict=False):
                    holds &= self.compare(one, op, other)
                return holds
        raise self.unclear(node)

    def compare(self, one: ast.expr, op: ast.cmpop, other: ast.expr) -> NDArray[np.bool_]:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(other, ast.List | ast.Tuple | ast.Set):
                raise self.unclear(other)
            found = np.zeros(self.n_rows, dtype=bool)
            for item in other.elts:
                found |= self.compare(one, ast.Eq(), item)
            return ~found if isinstance(op, ast.NotIn) else found
        if type(op) not in COMPARISONS:
            raise self.unclear(one)
        left, right = self.value(one), self.value(other)
        for column, constant in ((left, right), (right, left)):
            if isinstance(column, np.ndarray) and not isinstance(constant, np.ndarray):
                self.check_kind(column, constant)
        compared = COMPARISONS[type(op)]
        if self.is_text(left) or self.is_text(right):
            return self.compare_text(left, right, compared)
        return np.broadcast_to(np.asarray(compared(left, right), dtype=bool), self.n_rows).copy()

    def compare_text(
        self, left: Any, right: Any, compared: Callable[[Any, Any], Any]
    ) -> NDArray[np.bool_]:
        """Compare text row by row; nothing is true of a value that is missing."""
        lefts = left if isinstance(left, np.ndarray) else [left] * self.n_rows
        rights = right if isinstance(right, np.ndarray) else [right] * self.n_rows
        pairs = zip(lefts, rights, strict=True)
        return np.array(
            [a is not None and b is not None and bool(compared(a, b)) for a, b in pairs], dtype=bool
        )

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                column = self.names.get(name, name)
                if column not in self.columns:
                    raise ValueError(
                        f"The condition {self.condition!r} names {column!r}, which is no "
                        f"column that is kept. There are: {', '.join(self.columns) or 'none'}. "
                        "Text is written in quotes."
                    )
                return self.columns[column]
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
        raise self.unclear(node)

    def check_kind(self, column: NDArray[Any], constant: Any) -> None:
        if (column.dtype == object) != isinstance(constant, str):
            held = "text" if column.dtype == object else "numbers"
            raise ValueError(
                f"The condition {self.condition!r} compares a column of {held} with {constant!r}. "
                f"{'Write it in quotes' if held == 'text' else 'Leave the quotes out'}."
            )

    @staticmethod
    def is_text(value: Any) -> bool:
        return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)

    def unclear(self, node: ast.AST) -> ValueError:
        return ValueError(
            f"The condition {self.condition!r} holds {ast.unparse(node)!r}, which is not "
            f"understood. {HOW}"
        )
