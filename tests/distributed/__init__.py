"""Models whose rows shards hold."""
