"""``python -m graftboost`` is the command line too."""

from graftboost.cli import main

main()
