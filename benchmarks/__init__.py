"""graftboost compared with other libraries: time, memory and error of fits and updates.

Run ``python -m benchmarks --help`` from the root of the repository.
"""
