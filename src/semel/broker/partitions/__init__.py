"""Partitions at work: appending, reading, loading, and what is done to logs in the background."""
