"""Bytes to objects and back, pure: messages, frames, record batches, compression, errors."""
