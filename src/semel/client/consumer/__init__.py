"""The consumer: fetching, positions, and membership in groups of both protocols."""
