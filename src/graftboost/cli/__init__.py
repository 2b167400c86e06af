"""The command line: create a store from a file of rows, and process requests."""

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
            f"graftboost: the command line requires {error.name}, which is not installed. "
            "Install it with: pip install 'graftboost[cli]'"
        )
    app(prog_name="graftboost")
