"""Models whose rows are distributed over processes, on one machine or many."""
