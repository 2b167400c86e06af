"""graftboost beside its peers: fit and predict time, memory, test error, import time, updates.

Run ``python -m benchmarks --help`` from the root of the repository.
"""
