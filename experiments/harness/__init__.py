"""What all experiments share: running them, storing what they measure, and writing pages."""
