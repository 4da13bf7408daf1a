"""Damages messages in every way and checks that decoding only ever ends in ProtocolError.

    python tests/wire/fuzz.py --cases 1000000 [--seed 7]

Each case takes a message of a random API and version, damages its bytes and decodes them, with and
without the frame's header. What still decodes must encode again, to bytes that decode to the same.
A failure prints the seed and the case, and the same seed finds it again.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from uuid import UUID

from semel.wire.errors import ProtocolError
from semel.wire.frames import (
    decode_request,
    decode_response,
    encode_response,
    request_reader,
    response_writer,
)
from semel.wire.messages import APIS, request_class, response_class
from semel.wire.schema import FIXED, Field, Message, Struct

RECORD_MODULES = ("transaction_state", "consumer_offsets", "consumer_groups", "consumer_protocol")
Primitive = Callable[[random.Random, str], Any]
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def all_messages() -> Iterator[type[Message]]:
    for api_key in APIS:
        yield request_class(api_key)
        yield response_class(api_key)
    for module in RECORD_MODULES:
        for value in vars(import_module(f"semel.wire.records.{module}")).values():
            if isinstance(value, type) and issubclass(value, Message) and value is not Message:
                yield value


def random_struct(
    dice: random.Random, cls: type[Struct], version: int, primitive: Primitive | None = None
) -> Any:
    """A struct with something in every field that the version has."""
    return cls(
        **{
            field.name: _random_value(dice, cls, field, version, primitive or _random_primitive)
            for field in cls.FIELDS.values()
            if version in field.versions
        }
    )


def _random_value(
    dice: random.Random, cls: type[Struct], field: Field, version: int, primitive: Primitive
) -> Any:
    if version in field.nullable and dice.random() < 0.2:
        return None
    if field.kind == "nested":
        return random_struct(dice, getattr(cls.OWNER, field.element), version, primitive)
    if field.kind != "array":
        return primitive(dice, field.kind)
    count = dice.choice((0, 1, 1, 2, 3))
    if field.element in FIXED or field.element == "string":
        return [primitive(dice, field.element) for _ in range(count)]
    element = getattr(cls.OWNER, field.element)
    return [random_struct(dice, element, version, primitive) for _ in range(count)]


def _random_primitive(dice: random.Random, kind: str) -> Any:
    if kind in _BITS:
        return dice.randrange(-(1 << _BITS[kind] - 1), 1 << _BITS[kind] - 1)
    if kind == "boolean":
        return dice.random() < 0.5
    if kind == "uint16":
        return dice.randrange(1 << 16)
    if kind == "float64":
        return dice.uniform(-1e9, 1e9)
    if kind == "uuid":
        return UUID(int=dice.getrandbits(128))
    if kind == "string":
        return "".join(dice.choice("abcdefgh.-_é€😀") for _ in range(dice.choice((0, 1, 5, 130))))
    return dice.randbytes(dice.choice((0, 1, 20, 200)))


def truncate(dice: random.Random, data: bytearray) -> None:
    del data[dice.randrange(len(data) + 1) :]


def flip_bits(dice: random.Random, data: bytearray) -> None:
    for _ in range(dice.choice((1, 1, 2, 8))):
        if data:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def scribble(dice: random.Random, data: bytearray) -> None:
    start = dice.randrange(len(data) + 1)
    data[start : start + dice.choice((1, 2, 4, 16))] = dice.randbytes(dice.choice((0, 1, 4, 16)))


_LENGTHS = [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff", b"\x80\x80\x80\x80\x00"] + [
    struct.pack(code, value)
    for code, values in {
        ">i": (0x7FFFFFFF, -0x80000000, -1, -2, 0x10000, 1000),
        ">h": (0x7FFF, -0x8000, -2),
    }.items()
    for value in values
]


def lie_about_a_length(dice: random.Random, data: bytearray) -> None:
    lie = dice.choice(_LENGTHS)
    start = dice.randrange(len(data) + 1)
    data[start : start + len(lie)] = lie


def replace_by_noise(dice: random.Random, data: bytearray) -> None:
    data[:] = dice.randbytes(dice.choice((0, 1, 4, 30, 300)))


def append_noise(dice: random.Random, data: bytearray) -> None:
    data += dice.randbytes(dice.choice((1, 4, 100)))


DAMAGES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    truncate,
    flip_bits,
    scribble,
    lie_about_a_length,
    replace_by_noise,
    append_noise,
)


class Fuzzer:
    """A seeded stream of cases; `refused` and `decoded` count how they ended."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.refused = self.decoded = 0
        self.corpus = [
            (cls, version, self._sample(cls, version))
            for cls in all_messages()
            for version in cls.VERSIONS
            for _ in range(3)
        ]

    def _sample(self, cls: type[Message], version: int) -> bytes:
        out = bytearray()
        random_struct(self.dice, cls, version).encode(out, version)
        return bytes(out)

    def case(self) -> None:
        cls, version, sample = self.dice.choice(self.corpus)
        damaged = bytearray(sample)
        self.dice.choice(DAMAGES)(self.dice, damaged)
        data: Any = bytes(damaged)
        if self.dice.random() < 0.5:
            data = memoryview(data)
        try:
            message, end = cls.decode(data, 0, version)
        except ProtocolError:
            self.refused += 1
        else:
            self.decoded += 1
            assert 0 <= end <= len(data), (cls, version, end)
            self._encodes_again(message, version)
        if self.dice.random() < 0.1:
            self._in_a_frame(cls, version, damaged)
            self._as_the_broker_reads(cls, version, damaged)

    def _encodes_again(self, message: Message, version: int) -> None:
        first, second = bytearray(), bytearray()
        message.encode(first, version)
        again, end = type(message).decode(first, 0, version)
        again.encode(second, version)
        assert end == len(first)
        assert first == second, (message, again)
        if type(message).__name__.endswith("Response"):
            frame = response_writer(message.API_KEY, version)(message, 7)
            assert frame == encode_response(7, message, version), message

    def _as_the_broker_reads(self, cls: type[Message], version: int, damaged: bytearray) -> None:
        """What is compiled together with the header reads what is compiled without it."""
        if not cls.__name__.endswith("Request"):
            return
        header = struct.pack(">hhih", cls.API_KEY, version, 5, 3) + b"abc"
        frame = bytearray(header + b"\0" * cls.is_flexible(version) + damaged)
        apart = _outcome(lambda: decode_request(frame)[1], version)
        together = _outcome(
            lambda: request_reader(cls.API_KEY, version)(frame, len(header)), version
        )
        assert together == apart, (cls, version, damaged)

    def _in_a_frame(self, cls: type[Message], version: int, damaged: bytearray) -> None:
        header = bytearray(struct.pack(">hhih", cls.API_KEY, version, 5, 3) + b"abc\0")
        if self.dice.random() < 0.5:
            flip_bits(self.dice, header)
        for decode in (
            lambda: decode_request(header + damaged),
            lambda: decode_response(header[4:] + damaged, cls.API_KEY, version),
        ):
            try:
                decode()
            except ProtocolError:
                self.refused += 1
            else:
                self.decoded += 1


def _outcome(decode: Callable[[], Message], version: int) -> bytes | None:
    """The bytes of what was decoded, or None if it was refused."""
    out = bytearray()
    try:
        decode().encode(out, version)
    except ProtocolError:
        return None
    return bytes(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    fuzzer = Fuzzer(seed)
    started = time.monotonic()
    for number in range(options.cases):
        try:
            fuzzer.case()
        except BaseException:
            print(f"seed {seed}, case {number} failed", file=sys.stderr)
            raise
    seconds = time.monotonic() - started
    print(
        f"{options.cases} cases in {seconds:.0f} s from seed {seed}: {fuzzer.refused} refused, "
        f"{fuzzer.decoded} decoded and encoded again, no other exception"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
