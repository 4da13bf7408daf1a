"""The columns that the sinks take: those of Spark's own Kafka sink, checked at the start."""

from __future__ import annotations

from pyspark.sql import types as T

from semel.errors import UsageError

_HEADERS = "array<struct<key:string,value:binary>>"
_CASTS = {"headers": _HEADERS, "partition": "int", "topic": "string", "timestamp": "timestamp"}


def columns_of(schema: T.StructType, topic: str | None) -> dict[str, str | None]:
    """The columns that are written, each with the type that it must have, None if any is right."""
    fields = {field.name: field.dataType for field in schema.fields}
    if "value" not in fields:
        raise UsageError(f"the sink needs a column `value`; there are {', '.join(fields)}")
    if topic is None and "topic" not in fields:
        raise UsageError("give the sink a topic, or the rows a column `topic`")
    chosen: dict[str, str | None] = {}
    for name in ("key", "value"):
        if name in fields:
            if not isinstance(fields[name], (T.StringType, T.BinaryType, T.NullType)):
                raise UsageError(
                    f"column `{name}` must be string or binary, not {fields[name].simpleString()}"
                )
            chosen[name] = None
    for name, kind in _CASTS.items():
        if name in fields and not (name == "topic" and topic):
            chosen[name] = kind
    return chosen
