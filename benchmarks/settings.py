"""Settings that are the same for all libraries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Size of the model and number of threads; all else is the library's default."""

    leaves: int = 20
    iterations: int = 100
    shrinkage: float = 0.1
    min_rows: int = 20  # per leaf, if the library has such a parameter
    threads: int = 2

    def __str__(self) -> str:
        """One line for the caption of a table."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{self.leaves} leaves, {self.iterations} iterations, learning rate "
            f"{self.shrinkage:g}, at least {self.min_rows} rows per leaf, {threads}"
        )
