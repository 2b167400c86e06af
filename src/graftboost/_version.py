"""The version of graftboost, written down here and nowhere else."""

__version__ = "0.1.0"
