"""What updates cost compared with retraining, and how much they forget.

Each module is one part of ``python -m benchmarks updates``, with its measurement, table and goals.
"""
