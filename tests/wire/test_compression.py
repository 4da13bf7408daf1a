"""Compression: both framings of snappy, bounded unpacking, and settings by name."""

import subprocess
import sys
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.wire.compression import Compression, compress, decompress
from semel.wire.errors import ProtocolError

REAL = [codec for codec in Compression if codec is not Compression.NONE]


@given(st.sampled_from(list(Compression)), st.binary(max_size=5000), st.integers(1, 60))
def test_every_codec_gives_back_what_it_was_given(
    codec: Compression, data: bytes, times: int
) -> None:
    data = data * times
    assert bytes(decompress(codec, memoryview(bytes(compress(codec, data))))) == data


def test_raw_snappy_is_read_too() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"abc" * 1000))
    assert decompress(Compression.SNAPPY, raw) == b"abc" * 1000


def test_lz4_with_linked_blocks_is_read_too() -> None:
    linked = bytes(cramjam.lz4.compress(b"abcdefg" * 50_000))
    assert decompress(Compression.LZ4, linked) == b"abcdefg" * 50_000


def test_lz4_is_written_with_independent_blocks_because_java_reads_no_others() -> None:
    packed = bytes(compress(Compression.LZ4, b"abcdefg" * 50_000))
    assert packed[4] & 0x20


def test_gzip_of_several_members_is_read_to_the_end() -> None:
    members = bytes(compress(Compression.GZIP, b"one ")) + bytes(compress(Compression.GZIP, b"two"))
    assert decompress(Compression.GZIP, members) == b"one two"


@pytest.mark.parametrize("codec", REAL)
def test_a_bomb_is_refused_at_the_limit(codec: Compression) -> None:
    bomb = bytes(compress(codec, bytes(1_000_000)))
    assert len(decompress(codec, bomb, limit=1_000_000)) == 1_000_000
    with pytest.raises(ProtocolError, match="more than the limit of 999999 bytes"):
        decompress(codec, bomb, limit=999_999)


@pytest.mark.parametrize("codec", REAL)
def test_truncated_data_is_refused(codec: Compression) -> None:
    packed = bytes(compress(codec, bytes(range(256)) * 400))
    for missing in (1, 5, len(packed) // 2):
        with pytest.raises(ProtocolError):
            decompress(codec, packed[:-missing])


def test_a_lying_snappy_length_allocates_nothing() -> None:
    with pytest.raises(ProtocolError, match="limit"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f")


def test_damaged_gzip_is_named() -> None:
    packed = bytearray(compress(Compression.GZIP, b"hello"))
    packed[12] ^= 0xFF
    with pytest.raises(ProtocolError, match="gzip"):
        decompress(Compression.GZIP, packed)
    assert zlib.decompress(bytes(compress(Compression.GZIP, b"hello")), 31) == b"hello"


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(ProtocolError, match="compression 5"):
        decompress(5, b"")


def test_codecs_go_by_their_settings_names() -> None:
    assert Compression.named("lz4") is Compression.LZ4
    assert Compression.named(None) is Compression.NONE
    with pytest.raises(ValueError, match="none, gzip, snappy, lz4, zstd"):
        Compression.named("brotli")


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, semel.wire.batches; print('cramjam' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
