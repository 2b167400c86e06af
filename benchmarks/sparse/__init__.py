"""Tables that are mostly zeros, with very many columns: fits, updates, a stream, one-hot codes.

Each module is one part of ``python -m benchmarks sparse``: what it measures, the table that it
prints, and the goals that its figures are held against.
"""
