"""Escape control characters in text from outside, which a terminal would execute."""

from __future__ import annotations

from typing import Any


def printable(text: Any) -> str:
    r"""Return a text with all characters escaped that are not printable.

    These are control characters (including line breaks and terminal escape sequences), marks that
    change the direction of writing, other invisible characters, and unpaired surrogates.

    Parameters
    ----------
    text : object
        The value to print; converted to text.

    Returns
    -------
    str
        One line that every terminal shows unchanged.

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
