"""Text from outside, made safe to print: terminals obey some characters instead of showing them."""

from __future__ import annotations

from typing import Any


def printable(text: Any) -> str:
    r"""Return a text with every character escaped that is not shown as itself.

    These are control characters (line breaks and the escape that begins a terminal's commands among
    them), marks that change the direction of writing, other invisible characters, and halves of
    surrogate pairs, which cannot be printed at all.

    Parameters
    ----------
    text : object
        What is to be printed; converted to text.

    Returns
    -------
    str
        One line that any terminal shows as it is.

    Examples
    --------
    >>> printable("erase 17\x1b[2J\n")
    'erase 17\\x1b[2J\\n'
    >>> printable("Łódź, naïve")
    'Łódź, naïve'
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
