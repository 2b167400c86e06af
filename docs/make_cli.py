"""Write docs/cli.md from the code of the commands: ``python docs/make_cli.py``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import typer.main

from graftboost.cli.app import app

TOP = """\
# The command line

Generated from the code by `python docs/make_cli.py`. Install the command line with
`pip install 'graftboost[cli]'`. [The tutorial](tutorial.md) shows how to process a deletion
request.

The exit code of a command is 0 on success, 1 on failure, 2 for a usage error, 3 if another process
has locked the store, 4 if a file is damaged, and 5 if the disk failed and it is not known whether
the change was made. Error messages go to standard error and state what to do.
`graftboost --install-completion` enables shell completion of commands and options.
"""


def main() -> None:
    """Write the page."""
    Path(__file__).with_name("cli.md").write_text(page())


def page() -> str:
    """Return the page."""
    group: Any = typer.main.get_command(app)
    parts = [TOP]
    for name, command in group.commands.items():
        parts.append(f"## graftboost {name}\n\n{inspect.cleandoc(command.help)}\n")
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        usage = " ".join(["graftboost", name, *(_shown(a) for a in arguments)])
        needed = [f"{o.opts[0]} {o.metavar}" for o in options if o.required]
        parts.append(
            f"```\n{' '.join([usage, *needed, '[OPTIONS]' if options else '']).strip()}\n```\n"
        )
        rows = [(f"`{_shown(p)}`", p.help) for p in arguments]
        rows += [(f"`{_option(p)}`", p.help + _default(p)) for p in options]
        if rows:
            lines = ["| | |", "| --- | --- |", *(f"| {one} | {two} |" for one, two in rows)]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _shown(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _option(parameter: Any) -> str:
    names = ", ".join(reversed(parameter.opts))
    if parameter.is_flag:
        return names
    return f"{names} {parameter.metavar}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return " Required."
    if isinstance(parameter.show_default, str):
        return f" Default: {parameter.show_default}."
    if parameter.is_flag or parameter.default in (None, ()):
        return ""
    return f" Default: {parameter.default}."


if __name__ == "__main__":
    main()
