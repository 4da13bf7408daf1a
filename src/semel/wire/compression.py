"""The four compressions of record batches, in the framings that Apache Kafka reads and writes.

gzip is the standard library's; snappy, lz4 and zstd come from `cramjam`, loaded at first use,
because a broker that never looks into a batch never needs it. Unpacking is bounded: the sizes come
off the wire, so none of them is believed beyond `limit`.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

from semel.wire.errors import ProtocolError

Buffer = bytes | bytearray | memoryview

# A batch is at most a few megabytes on the wire; more than this once unpacked is an attack.
DECOMPRESSED_LIMIT = 256 * 1024 * 1024

# What xerial's SnappyOutputStream writes first: magic, version, oldest version that can read it.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024

# Java's Lz4BlockInputStream refuses frames with linked blocks, and those are all that the library's
# own frame writer makes. This is its frame header: magic, version 1 with independent blocks, 64 KiB
# blocks, and the checksum of these two bytes.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x8000_0000
_LZ4_END = b"\0\0\0\0"


class Compression(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str | None) -> "Compression":
        """The codec for a `compression_type` setting."""
        try:
            return cls[(name or "none").upper()]
        except KeyError:
            allowed = ", ".join(codec.name.lower() for codec in cls)
            raise ValueError(f"unknown compression {name!r}: use one of {allowed}") from None


def compress(codec: Compression, data: Buffer) -> Buffer:
    return data if codec is Compression.NONE else _COMPRESS[codec](data)


def decompress(codec: int, data: Buffer, limit: int = DECOMPRESSED_LIMIT) -> Buffer:
    """The records behind `data`; more than `limit` bytes of them, or damage, is a ProtocolError."""
    if codec == Compression.NONE:
        return data
    unpack = _DECOMPRESS.get(codec)
    if unpack is None:
        raise ProtocolError(f"compression {codec} is not one of 0 to 4")
    return unpack(data, limit)


@cache
def _cramjam() -> Any:
    import cramjam

    return cramjam


def _too_large(codec: str, limit: int) -> ProtocolError:
    return ProtocolError(f"{codec} data unpacks to more than the limit of {limit} bytes")


def _gzip_compress(data: Buffer) -> Buffer:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def _gzip_decompress(data: Buffer, limit: int) -> Buffer:
    """Members one after another, as Java's GZIPInputStream takes them."""
    out = bytearray()
    rest: Buffer = data
    while len(rest):
        member = zlib.decompressobj(wbits=31)
        try:
            # One byte more than allowed tells "too large" from "just fits".
            out += member.decompress(rest, limit + 1 - len(out))
        except zlib.error as error:
            raise ProtocolError(f"damaged gzip data: {error}") from None
        if len(out) > limit:
            raise _too_large("gzip", limit)
        if not member.eof:
            raise ProtocolError("damaged gzip data: it ends too early")
        rest = member.unused_data
    return out


def _snappy_compress(data: Buffer) -> Buffer:
    pack = _cramjam().snappy.compress_raw
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(pack(view[start : start + _XERIAL_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, limit: int) -> Buffer:
    """Xerial's blocks, or one raw block, which is what librdkafka and others send."""
    view = memoryview(data)
    out = bytearray()
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        _snappy_block(view, out, limit)
        return out
    position = len(_XERIAL_HEADER)
    while position < len(view):
        size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if not 0 < size <= len(view) - position:
            raise ProtocolError(f"a snappy block of {size} bytes, {len(view) - position} are left")
        _snappy_block(view[position : position + size], out, limit)
        position += size
    return out


def _snappy_block(block: memoryview, out: bytearray, limit: int) -> None:
    cramjam = _cramjam()
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if len(out) + size > limit:
            raise _too_large("snappy", limit)
        out += memoryview(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ProtocolError(f"damaged snappy data: {error}") from None


def _lz4_compress(data: Buffer) -> Buffer:
    pack = _cramjam().lz4.compress_block
    view = memoryview(data)
    parts: list[Buffer] = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK):
        plain = view[start : start + _LZ4_BLOCK]
        block = bytes(pack(plain, store_size=False))
        if len(block) < len(plain):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(plain) | _LZ4_STORED).to_bytes(4, "little"), plain)
    parts.append(_LZ4_END)
    return b"".join(parts)


def _lz4_decompress(data: Buffer, limit: int) -> Buffer:
    return _unpack_growing("lz4", _cramjam().lz4.decompress_into, data, limit)


def _zstd_compress(data: Buffer) -> Buffer:
    return memoryview(_cramjam().zstd.compress(data, level=3))


def _zstd_decompress(data: Buffer, limit: int) -> Buffer:
    return _unpack_growing("zstd", _cramjam().zstd.decompress_into, data, limit)


def _unpack_growing(
    codec: str, unpack_into: Callable[[Buffer, bytearray], int], data: Buffer, limit: int
) -> Buffer:
    """Unpacks into a buffer that is made larger when it turns out too small, up to `limit`.

    Neither format must say its size. Untouched pages of a large bytearray cost no memory.
    """
    size = min(max(8 * len(data), 64 * 1024), limit)
    while True:
        out = bytearray(size)
        try:
            length = unpack_into(data, out)
        except _cramjam().DecompressionError as error:
            if "whole buffer" not in str(error):
                raise ProtocolError(f"damaged {codec} data: {error}") from None
            if size == limit:
                raise _too_large(codec, limit) from None
            size = min(8 * size, limit)
            continue
        del out[length:]
        return out


_COMPRESS: dict[Compression, Callable[[Buffer], Buffer]] = {
    Compression.GZIP: _gzip_compress,
    Compression.SNAPPY: _snappy_compress,
    Compression.LZ4: _lz4_compress,
    Compression.ZSTD: _zstd_compress,
}
_DECOMPRESS: dict[int, Callable[[Buffer, int], Buffer]] = {
    Compression.GZIP: _gzip_decompress,
    Compression.SNAPPY: _snappy_decompress,
    Compression.LZ4: _lz4_decompress,
    Compression.ZSTD: _zstd_decompress,
}
