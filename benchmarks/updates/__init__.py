"""What updates cost beside training again, and what they leave behind.

Each module is one part of ``python -m benchmarks updates``: what it measures, the table that it
prints, and the goals that its figures are held against.
"""
