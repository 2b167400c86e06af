"""The version of graftboost, which is defined only here."""

__version__ = "0.1.0"
