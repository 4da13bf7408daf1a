"""The quick part of `fuzz.py`, and what a lying length may cost."""

from __future__ import annotations

import importlib.util
import struct
import tracemalloc
from pathlib import Path
from types import ModuleType

import pytest

from semel.wire.errors import ProtocolError
from semel.wire.schema import Message


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).with_name("fuzz.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_damaged_messages_end_in_protocol_errors_only(fuzz: ModuleType) -> None:
    fuzzer = fuzz.Fuzzer(seed=20_240)
    for _ in range(40_000):
        fuzzer.case()
    assert fuzzer.refused > 10_000
    assert fuzzer.decoded > 5_000


def test_every_truncation_of_every_message_is_refused(fuzz: ModuleType) -> None:
    for cls, version, sample in fuzz.Fuzzer(seed=3).corpus[::3]:
        for size in range(0, len(sample), 1 + len(sample) // 50):
            with pytest.raises(ProtocolError):
                cls.decode(sample[:size], 0, version)


def test_a_lying_length_allocates_nothing(fuzz: ModuleType) -> None:
    lies = (b"\xff\xff\xff\xff\x0f", struct.pack(">i", 0x7FFFFFFF), struct.pack(">h", 0x7FFF))
    corpus = fuzz.Fuzzer(seed=4).corpus[::3]
    for cls, version, sample in corpus:
        _decode(cls, version, sample)  # compiled before anything is measured
    tracemalloc.start()
    try:
        for cls, version, sample in corpus:
            for position in range(0, len(sample), 1 + len(sample) // 10):
                for lie in lies:
                    _decode(cls, version, sample[:position] + lie + sample[position:])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def _decode(cls: type[Message], version: int, data: bytes) -> None:
    try:
        cls.decode(data, 0, version)
    except ProtocolError:
        return
