"""What every library is asked to do alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Size of the model and the threads that may build it; all else is a library's default."""

    leaves: int = 20
    iterations: int = 100
    shrinkage: float = 0.1
    min_rows: int = 20  # in a leaf, where the library has such a parameter
    threads: int = 2

    def __str__(self) -> str:
        """One line for the head of a table."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{self.leaves} leaves, {self.iterations} iterations, shrinkage {self.shrinkage:g}, "
            f"{self.min_rows} rows in a leaf, {threads}"
        )
