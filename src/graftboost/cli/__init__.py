"""The command line: a model in a store, from the first file of rows to a served request."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from graftboost.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("graftboost"):
            raise
        sys.exit(
            f"graftboost: the command line needs {error.name}, which is not installed. "
            "Install it with: pip install 'graftboost[cli]'"
        )
    app(prog_name="graftboost")
