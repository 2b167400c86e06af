"""One parameter at a time: its effect on the cost and quality of updates."""
