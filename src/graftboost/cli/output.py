"""What people and machines see: tables, JSON, progress, and errors that say what to do."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

Command = TypeVar("Command", bound=Callable[..., None])
Row = TypeVar("Row")

# What a command ends with. 2 is for wrong usage, which the parser finds.
FAILED, LOCKED, DAMAGED, UNKNOWN = 1, 3, 4, 5

SHORT_DIGEST = 12  # digits that people are shown


class Output:
    """Where a command says what it did.

    Parameters
    ----------
    as_json : bool
        Whether a machine reads it.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, content: Mapping[str, Any], text: str | None = None) -> None:
        """Print a result: JSON for machines, and for people what `text` says, or its entries."""
        if self.as_json:
            print(_as_json(content))
        elif text is not None:
            print(_shown(text))
        else:
            width = max((len(name) for name in content), default=0)
            for name, value in content.items():
                print(f"{name.replace('_', ' '):<{width}}  {_written(value)}")

    def table(
        self,
        heads: Sequence[str],
        rows: Callable[[], Iterable[Row]],
        *,
        content: Callable[[Row], Mapping[str, Any]],
        cells: Callable[[Row], Sequence[Any]],
    ) -> None:
        """Print a table of any length: it is never held as a whole.

        Parameters
        ----------
        heads : sequence of str
            What stands above the columns.
        rows : callable
            Returns the rows from the first on. It is called twice for people: the first time, to
            see how wide the columns are.
        content, cells : callable
            Return what machines and people see of a row.
        """
        if self.as_json:
            print("[", end="")
            for place, row in enumerate(rows()):
                print("," if place else "", _as_json(content(row)), sep="\n", end="")
            print("\n]")
            return
        widths, numeric = [len(head) for head in heads], [True] * len(heads)
        for row in rows():
            for i, cell in enumerate(cells(row)):
                widths[i] = max(widths[i], len(_written(cell)))
                numeric[i] &= isinstance(cell, int | float)

        def line(values: Iterable[Any]) -> str:
            aligned = (
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(map(_written, values), widths, numeric, strict=True)
            )
            return "  ".join(aligned).rstrip()

        print(line(heads))
        for row in rows():
            print(line(cells(row)))

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


def _as_json(content: Any) -> str:
    # JSON escapes all but ASCII here, and of ASCII's controls all but this one.
    return json.dumps(content, indent=1, default=str).replace("\x7f", "\\u007f")


def _shown(text: str) -> str:
    """Return lines that a terminal shows as they are."""
    from graftboost.store.printable import printable

    return "\n".join(map(printable, text.split("\n")))


def _written(value: Any) -> str:
    from graftboost.store.printable import printable

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(printable, value)) or "none"
    return "none" if value is None else printable(value)


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
    from graftboost.persistence.file_format import InvalidFileError
    from graftboost.store import OutcomeUnknownError, StoreError, StoreLockedError

    codes: dict[type[Exception], int] = {
        StoreLockedError: LOCKED,
        InvalidFileError: DAMAGED,
        OutcomeUnknownError: UNKNOWN,
    }
    expected = (ValueError, TypeError, OSError, KeyError, StoreError, StoreLockedError, ImportError)
    if not isinstance(error, expected):
        raise error
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    # Further lines are set off, so that none of them looks like a message of its own.
    print("graftboost: " + _shown(str(message)).replace("\n", "\n  "), file=sys.stderr)
    sys.exit(next((code for kind, code in codes.items() if isinstance(error, kind)), FAILED))
