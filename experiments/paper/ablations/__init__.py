"""One setting at a time: what the size of an update, or of a model, does to cost and quality."""
