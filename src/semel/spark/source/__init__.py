"""The source: `format("semel")` for streams and batches."""
