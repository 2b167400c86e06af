"""Experiments of our own, which are not in the paper."""
