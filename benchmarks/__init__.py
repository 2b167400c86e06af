"""graftboost beside its peers: time, memory and error of fits, updates, stores, sparse tables.

Run ``python -m benchmarks --help`` from the root of the repository.
"""
