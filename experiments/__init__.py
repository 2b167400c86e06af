"""The tables and figures of the paper, and ours, each with the control that it needs.

One module for each; ``python -m experiments`` runs them and writes ``docs/results.md``.
"""
