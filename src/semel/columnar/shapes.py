"""What the kernels and their callers agree on, with or without numba."""

from __future__ import annotations

# Why `scatter` stopped.
DONE, FULL, NO_BUFFER = 0, 1, 2

# The cursor of `decode_records`: how far each output array is filled.
ROWS, KEY_BYTES, VALUE_BYTES, HEADERS, NAME_BYTES, HEADER_BYTES = range(6)
