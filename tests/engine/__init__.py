"""Tests of the engine itself, through its bindings alone."""
