"""Sparse data with very many columns: fits, updates, a stream and one-hot columns.

Each module is one part of ``python -m benchmarks sparse``, with its measurement, table and goals.
"""
