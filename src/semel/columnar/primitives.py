"""Varints, memory copies and validity bits, as the kernels see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.extending import intrinsic as _intrinsic
from numba.np.arrayobj import make_array as _make_array

from semel.columnar.compiled import helper

# Readonly, because Arrow's buffers are; numba takes a writable array for it too.
BYTES = "Array(uint8, 1, 'C', readonly=True)"
INTS = "Array(int64, 1, 'C', readonly=True)"
INTS32 = "Array(int32, 1, 'C', readonly=True)"

# Numba ships hints for part of itself; these three it leaves untyped or types for its own use.
cgutils: Any = _cgutils
intrinsic: Any = _intrinsic
make_array: Any = _make_array

_ONE = np.uint64(1)
_SEVEN = np.uint64(7)
_LIMIT = np.uint64(128)


@intrinsic  # type: ignore[untyped-decorator]
def copy(typing_context: Any, target: Any, to: Any, source: Any, start: Any, length: Any) -> Any:
    """memcpy: a byte loop in a kernel is several times slower."""
    signature = types.void(target, types.int64, source, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, to, source, start, length = arguments
        target_array = make_array(signature.args[0])(context, builder, target)
        source_array = make_array(signature.args[2])(context, builder, source)
        destination = builder.gep(target_array.data, [to])
        origin = builder.gep(source_array.data, [start])
        cgutils.raw_memcpy(builder, destination, origin, length, 1)
        return context.get_dummy_value()

    return signature, generate


@helper
def zigzag(value: Any) -> Any:
    return np.uint64((value << 1) ^ (value >> 63))


@helper
def varint_size(value: Any) -> Any:
    size = 1
    while value >= _LIMIT:
        value >>= _SEVEN
        size += 1
    return size


@helper
def put_varint(out: Any, at: Any, value: Any) -> Any:
    while value >= _LIMIT:
        out[at] = np.uint8(value & np.uint64(127)) | np.uint8(128)
        value >>= _SEVEN
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@helper
def get_varint(data: Any, at: Any, end: Any) -> Any:
    """(value, next position); the position is -1 when the bytes end inside the number or it is too
    long.
    """
    value = np.uint64(0)
    shift = np.uint64(0)
    while at < end:
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < _LIMIT:
            return np.int64(value >> _ONE) ^ -np.int64(value & _ONE), at
        shift += _SEVEN
        if shift > np.uint64(63):
            break
    return np.int64(0), np.int64(-1)


@helper
def is_valid(bitmap: Any, bit: Any) -> Any:
    """Arrow's validity: an empty bitmap means that nothing is null."""
    return len(bitmap) == 0 or (bitmap[bit >> 3] >> (bit & 7)) & 1 == 1
