"""What the parts of the sparse benchmark have in common."""

from __future__ import annotations

from functools import partial

from benchmarks.libraries import LIBRARIES, YARDSTICK
from benchmarks.updates.part import Part

sparse_part = partial(Part, peers=(LIBRARIES[YARDSTICK],), command="sparse", repeats=3)
