"""Finds out why a message could not be encoded, and says it with the field's name.

Encoders check nothing beforehand: this slow walk over the schema runs only after one has failed.
"""

from __future__ import annotations

import struct
from uuid import UUID

from semel.wire.primitives import MAX_STRING_BYTES
from semel.wire.schema import FIXED, UNSET, Field, Message, Struct
from semel.wire.schema.construct import shared_default


def what_is_wrong(message: Message, version: int) -> str | None:
    """The first fault of a message, in words; None if there is none to be found."""
    fault = _of_struct(message, version)
    return None if fault is None else f"{type(message).__name__} v{version}: {fault}"


def _of_struct(it: Struct, version: int) -> str | None:
    for field in it.FIELDS.values():
        value = getattr(it, field.name)
        if version in field.versions:
            fault = _of_value(it, field, value, version)
        elif field.ignorable or _is_default(it, field, value):
            continue
        else:
            fault = " is not in this version, and may not be dropped"
        if fault is not None:
            return field.name + fault
    return None


def _is_default(it: Struct, field: Field, value: object) -> bool:
    if field.default is not UNSET:
        return bool(value == field.default)
    if field.kind == "array":
        return value == []
    return value == shared_default(getattr(it.OWNER, field.element))


def _of_value(it: Struct, field: Field, value: object, version: int) -> str | None:
    if value is None:
        return None if version in field.nullable else " may not be null in this version"
    if field.kind == "nested":
        return _of_nested(getattr(it.OWNER, field.element), value, version)
    if field.kind != "array":
        return _of_primitive(field.kind, value)
    if not isinstance(value, list | tuple):
        return f" must be a list, not {type(value).__name__}"
    for index, item in enumerate(value):
        if field.element in FIXED or field.element == "string":
            fault = _of_primitive(field.element, item)
        else:
            fault = _of_nested(getattr(it.OWNER, field.element), item, version)
        if fault is not None:
            return f"[{index}]{fault}"
    return None


def _of_nested(cls: type[Struct], value: object, version: int) -> str | None:
    if not isinstance(value, cls):
        return f" must be a {cls.__name__}, not {type(value).__name__}"
    fault = _of_struct(value, version)
    return None if fault is None else "." + fault


def _of_primitive(kind: str, value: object) -> str | None:
    if value is None:
        return " may not be null"
    if kind == "uuid":
        return None if isinstance(value, UUID) else f" must be a UUID, not {value!r}"
    if kind in FIXED:
        try:
            struct.pack(">" + FIXED[kind], value)
        except struct.error as error:
            return f" cannot be {value!r}: {error}"
    elif kind == "string":
        return _of_string(value)
    elif not hasattr(value, "__len__"):
        return f" must be bytes, not {type(value).__name__}"
    return None


def _of_string(value: object) -> str | None:
    if not isinstance(value, str):
        return f" must be a str, not {type(value).__name__}"
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        return f" is not valid Unicode: {error}"
    return f" is longer than {MAX_STRING_BYTES} bytes" if size > MAX_STRING_BYTES else None
