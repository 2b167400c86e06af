"""Two builds of the engine compared: models, speed and memory.

Each build runs in processes of its own, so both are measured in one run, in turns. It is a tool for
work on the engine: its tables are printed and not saved.
"""
