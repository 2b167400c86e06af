"""The output of commands: text, tables, JSON, progress, and error messages."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

Command = TypeVar("Command", bound=Callable[..., None])
Row = TypeVar("Row")

# Exit codes. The parser uses 2 for usage errors.
FAILED, LOCKED, DAMAGED, UNKNOWN = 1, 3, 4, 5

SHORT_DIGEST = 12  # digits shown in text output


class Output:
    """The output of one command.

    Parameters
    ----------
    as_json : bool
        Whether to print JSON instead of text.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, content: Mapping[str, Any], text: str | None = None) -> None:
        """Print a result as JSON, or as `text` if given, or as a list of its entries."""
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
        """Print a table of any length without keeping all rows in memory.

        Parameters
        ----------
        heads : sequence of str
            The column headings.
        rows : callable
            Returns an iterator over the rows. For text output it is called twice, first to
            determine the widths of columns.
        content, cells : callable
            Return the content of a row for JSON, and its cells for text.
        """
        if self.as_json:
            print("[", end="")
            for position, row in enumerate(rows()):
                print("," if position else "", _as_json(content(row)), sep="\n", end="")
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
        """Whether progress is shown."""
        return not self.as_json and sys.stderr.isatty()

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a status message while the block runs, if progress is shown."""
        if not self.is_watched:
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(f"{what} ..."):
            yield


def _as_json(content: Any) -> str:
    # json.dumps escapes all control characters except this one.
    return json.dumps(content, indent=1, default=str).replace("\x7f", "\\u007f")


def _shown(text: str) -> str:
    """Return text with control characters escaped in each line."""
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
    """End a command with a message and an exit code instead of a traceback for known errors."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # the reader has closed the pipe
            sys.stderr.close()
            sys.exit(FAILED)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            _fail(error)

    return guarded  # type: ignore[return-value]


def _fail(error: Exception) -> NoReturn:
    from graftboost.distributed.errors import OutcomeUnknownError as LostOutcomeError
    from graftboost.distributed.errors import ShardError
    from graftboost.persistence.file_format import InvalidFileError
    from graftboost.store import OutcomeUnknownError, StoreError, StoreLockedError

    codes: dict[type[Exception], int] = {
        StoreLockedError: LOCKED,
        InvalidFileError: DAMAGED,
        OutcomeUnknownError: UNKNOWN,
        LostOutcomeError: UNKNOWN,
    }
    expected = (
        ValueError,
        TypeError,
        OSError,
        KeyError,
        ImportError,
        StoreError,
        StoreLockedError,
        ShardError,
        LostOutcomeError,
    )
    if not isinstance(error, expected):
        raise error
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    # Further lines are indented, so that they do not look like separate messages.
    print("graftboost: " + _shown(str(message)).replace("\n", "\n  "), file=sys.stderr)
    sys.exit(next((code for kind, code in codes.items() if isinstance(error, kind)), FAILED))
