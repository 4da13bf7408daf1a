"""An Avro schema as a Spark type, written as DDL: no Java is needed to plan a read."""

from __future__ import annotations

from typing import Any

from semel.errors import UsageError

_PRIMITIVES = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "bytes": "binary", "string": "string", "null": "void",
}  # fmt: skip
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


def ddl_of(schema: Any, names: dict[str, Any] | None = None, above: tuple[str, ...] = ()) -> str:
    """`names` are the named types seen so far; `above` those that this one is part of."""
    names = {} if names is None else names
    if isinstance(schema, list):
        return ddl_of(_one_of(schema), names, above)
    if isinstance(schema, str):
        return _named(schema, names, above)
    if logical := _logical(schema):
        return logical
    kind = schema["type"]
    if kind == "array":
        return f"array<{ddl_of(schema['items'], names, above)}>"
    if kind == "map":
        return f"map<string, {ddl_of(schema['values'], names, above)}>"
    if kind == "enum":
        names[schema["name"]] = "string"
        return "string"
    if kind == "fixed":
        names[schema["name"]] = "binary"
        return "binary"
    if kind == "record":
        names[schema["name"]] = schema
        inside = (*above, schema["name"])
        fields = [f"`{f['name']}`: {ddl_of(f['type'], names, inside)}" for f in schema["fields"]]
        return f"struct<{', '.join(fields)}>"
    return ddl_of(kind, names, above)


def readable(schema: Any) -> Any:
    """The schema without logical types that have no column type here: their plain values stay."""
    if isinstance(schema, list):
        return [readable(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: readable(value) for name, value in schema.items() if name != "default"}
    if "logicalType" in kept and _logical(schema) is None:
        del kept["logicalType"]
    return kept


def _logical(schema: dict[str, Any]) -> str | None:
    if schema.get("logicalType") == "decimal":
        return f"decimal({schema['precision']}, {schema.get('scale', 0)})"
    return _LOGICAL.get(schema.get("logicalType", ""))


def _named(name: str, names: dict[str, Any], above: tuple[str, ...]) -> str:
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    short = name.rpartition(".")[2]
    found = names.get(name, names.get(short))
    if found is None:
        raise UsageError(f"valueSchema uses {name!r}, which it does not define")
    if short in above or name in above:
        raise UsageError(f"valueSchema is recursive in {name!r}: Spark has no such type")
    return found if isinstance(found, str) else ddl_of(found, names, above)


def _one_of(union: list[Any]) -> Any:
    kinds = [entry for entry in union if entry != "null"]
    if len(kinds) != 1:
        raise UsageError(f"a column has one type or null, not one of {union}")
    return kinds[0]
