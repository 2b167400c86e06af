"""What callers pass, on its way to the engine: tables, targets, weights and row ids."""
