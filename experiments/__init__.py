"""The paper's tables and figures, and experiments of our own, with controls.

``harness`` holds what all experiments share, ``paper`` and ``ours`` the experiments themselves.
``python -m experiments`` runs them and writes ``docs/results.md`` and the pages that it lists.
"""
