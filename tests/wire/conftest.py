"""Messages drawn by hypothesis from our schemas, and `kio` as the judge of their bytes."""

from __future__ import annotations

import io
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from hypothesis import strategies as st

from semel.wire.primitives import NO_UUID
from semel.wire.schema import FIXED, OWN_TAGS, Field, Message, Struct

_LONG = ["x" * 126, "x" * 127, "é" * 100, "x" * 20_000]  # around where lengths grow by a byte
_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "uint16": st.integers(0, 65535),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "uuid": st.just(NO_UUID) | st.uuids(version=4),
    "string": st.text(max_size=6) | st.sampled_from(_LONG),
    "binary": st.binary(max_size=9) | st.just(bytes(300)),
    "records": st.binary(max_size=9) | st.just(bytes(20_000)),
    **{
        kind: st.sampled_from([0, -1, 1]) | st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
        for kind, bits in _INTEGERS.items()
    },
}


@cache
def messages(cls: type[Struct], version: int, oracle: type | None = None) -> st.SearchStrategy[Any]:
    """Messages of one version; with an oracle, only such as kio can express too."""
    present = [field for field in cls.FIELDS.values() if version in field.versions]
    if oracle is None:
        theirs: list[Any] = [None] * len(present)
    else:
        present = [field for field in present if (field.tag or 0) < OWN_TAGS]
        theirs = [(field, get_type_hints(oracle)[field.name]) for field in fields(oracle)]
        assert len(theirs) == len(present), (cls, version, theirs, present)
    values = {
        ours.name: _values(cls, ours, version, their)
        for ours, their in zip(present, theirs, strict=True)
    }
    return st.builds(cls, **values)


def _values(cls: type[Struct], field: Field, version: int, their: Any) -> st.SearchStrategy[Any]:
    hint = their and their[1]
    if field.kind == "nested":
        values = messages(getattr(cls.OWNER, field.element), version, _entity_in(hint))
    elif field.kind == "array":
        if field.element in FIXED or field.element == "string":
            element = _KINDS[field.element]
        else:
            element = messages(getattr(cls.OWNER, field.element), version, _entity_in(hint))
        values = st.lists(element, max_size=2)
    else:
        values = _as_kio_can(their) if their else None
        values = _KINDS[field.kind] if values is None else values
    return st.none() | values if version in field.nullable else values


def _as_kio_can(their: Any) -> st.SearchStrategy[Any] | None:
    from kio.schema.errors import ErrorCode

    kind = their[0].metadata.get("kafka_type")
    if kind == "error_code":
        return st.sampled_from([code.value for code in ErrorCode])
    if kind == "timedelta_i64":
        return st.integers(-(10**12), 10**12)
    if kind == "datetime_i64":
        seconds = st.integers(0, 4_000_000_000).map(lambda s: s * 1000)
        return seconds | st.just(-1) if type(None) in get_args(their[1]) else seconds
    return None


def _entity_in(hint: Any) -> type | None:
    """The class inside `X`, `X | None`, `tuple[X, ...]` or `tuple[X, ...] | None`."""
    if hint is None or hasattr(hint, "__type__"):
        return hint
    return next((e for a in get_args(hint) if (e := a is not type(None) and _entity_in(a))), None)


class Kio:
    """The PyPI package kio: another author's reading of the same protocol."""

    @staticmethod
    def class_of(message: type[Message], version: int) -> type:
        from kio.index import load_entity_schema, load_request_schema, load_response_schema
        from kio.static.constants import EntityType

        if message.__name__.endswith("Request"):
            return load_request_schema(message.API_KEY, version)
        if message.__name__.endswith("Response"):
            return load_response_schema(message.API_KEY, version)
        name = "".join("_" + c.lower() if c.isupper() else c for c in message.__name__)[1:]
        return load_entity_schema(name, version, EntityType.data)

    def entity(self, ours: Struct, version: int, cls: type) -> Any:
        """Our message as kio's."""
        hints = get_type_hints(cls)
        present = [
            field
            for field in ours.FIELDS.values()
            if version in field.versions and (field.tag or 0) < OWN_TAGS
        ]
        values = {}
        for field, their in zip(present, fields(cls), strict=True):
            assert field.name in (their.name, f"{their.name}_ms"), (ours, field.name, their.name)
            value = getattr(ours, field.name)
            values[their.name] = self._value(value, their, version, hints[their.name])
        return cls(**values)

    def _value(self, value: Any, their: Any, version: int, hint: Any) -> Any:
        from kio.schema.errors import ErrorCode

        if isinstance(value, list):
            return tuple(self._value(item, their, version, hint) for item in value)
        if isinstance(value, Struct):
            entity = _entity_in(hint)
            assert entity is not None
            return self.entity(value, version, entity)
        kind = their.metadata.get("kafka_type", "")
        if isinstance(value, UUID):
            return value if value != NO_UUID else None
        if kind == "error_code":
            return ErrorCode(value)
        if kind.startswith("timedelta"):
            return timedelta(milliseconds=value)
        if kind == "datetime_i64":
            return None if value == -1 else datetime.fromtimestamp(value // 1000, UTC)
        return value

    @staticmethod
    def encode(entity: Any) -> bytes:
        from kio.serial import entity_writer

        with io.BytesIO() as out:
            entity_writer(type(entity))(out, entity)
            return out.getvalue()

    @staticmethod
    def decode(cls: type, data: bytes) -> Any:
        from kio.serial import entity_reader

        entity, size = entity_reader(cls)(data, 0)
        assert size == len(data)
        return entity


@pytest.fixture(scope="session")
def kio() -> Kio:
    return Kio()


@pytest.fixture(scope="session")
def messages_of() -> Any:
    """`messages_of(message class, version, kio class or None)`: a hypothesis strategy."""
    return messages
