"""What people and machines see: tables, JSON, progress, and errors that say what to do."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

Command = TypeVar("Command", bound=Callable[..., None])

# What a command ends with. 2 is for wrong usage, which the parser finds.
FAILED, LOCKED, DAMAGED = 1, 3, 4


class Output:
    """Where a command says what it did.

    Parameters
    ----------
    as_json : bool
        Whether a machine reads it.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, content: Mapping[str, Any] | Sequence[Any], text: str | None = None) -> None:
        """Print a result: JSON for machines, and for people what `text` says, or its entries."""
        if self.as_json:
            print(json.dumps(content, indent=1, default=str))
        elif text is not None:
            print(text)
        elif isinstance(content, Mapping):
            width = max((len(name) for name in content), default=0)
            for name, value in content.items():
                print(f"{name.replace('_', ' '):<{width}}  {_written(value)}")

    @property
    def is_watched(self) -> bool:
        """Whether somebody looks at it while it works."""
        return not self.as_json and sys.stderr.isatty()

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show that something takes a while, to somebody who looks: not in a pipe."""
        if not self.is_watched:
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(f"{what} ..."):
            yield


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out a table in plain text, numbers to the right."""
    cells = [[_written(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    numeric = [
        all(isinstance(row[i], int | float) for row in rows) if rows else False
        for i in range(len(heads))
    ]

    def line(row: Sequence[str]) -> str:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([line(heads), *map(line, cells)])


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def failing_clearly(command: Command) -> Command:
    """End a command with a message and a code instead of a traceback, where the cause is known."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # whoever read it has seen enough
            sys.stderr.close()
            sys.exit(FAILED)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            _fail(error)

    return guarded  # type: ignore[return-value]


def _fail(error: Exception) -> NoReturn:
    from graftboost.container import InvalidFileError
    from graftboost.store import StoreError, StoreLockedError

    codes: dict[type[Exception], int] = {StoreLockedError: LOCKED, InvalidFileError: DAMAGED}
    expected = (ValueError, TypeError, OSError, KeyError, StoreError, StoreLockedError, ImportError)
    if not isinstance(error, expected):
        raise error
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    print(f"graftboost: {message}", file=sys.stderr)
    sys.exit(next((code for kind, code in codes.items() if isinstance(error, kind)), FAILED))
