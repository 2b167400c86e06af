"""Titles of the paper's data sets."""

from __future__ import annotations

from datasets.paper import SETS

SERIES = {"global_temperatures": "GlobalTemperatures", "web_traffic": "WebTraffic"}


def starred(name: str) -> str:
    """Title of a data set, with a star if it replaces the paper's."""
    return SETS[name].title + ("*" if SETS[name].stand_in else "")
