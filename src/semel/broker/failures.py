"""A request that failed as a whole: how a handler says so, and its answer in the right shape.

Some responses have one error code at the top, some one per topic, partition or group, some both.
The schemas say where: every error code of the response is filled, and its lists are mirrored from
the request's, so that a client finds an answer for each thing it asked about.
"""

from __future__ import annotations

from functools import cache

from semel.store.interface import LogDeleted, StorageError
from semel.wire.errors import ErrorCode
from semel.wire.messages import response_class
from semel.wire.schema import Field, Message, Struct

#: Names that mean the same in a request and its response.
_SAME = {
    "topic": "name",
    "topic_name": "name",
    "partition": "partition_index",
    "index": "partition_index",
    "partition_id": "partition_index",
    "user": "name",
}
_CODES = {"error_code", "partition_error_code"}
_TEXTS = {"error_message"}
#: Never sent back: what a client said in these is no name of anything, and may be a secret.
_BYTES = {"binary", "records"}


class ApiError(Exception):
    """Raised by a handler, or below it: the whole request is answered with this code."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


def storage_code(problem: StorageError) -> ErrorCode:
    """What a client hears whose write was not to last: a disk may come back, a topic does not."""
    if isinstance(problem, LogDeleted):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.KAFKA_STORAGE_ERROR


def failure(request: Message, version: int, code: int, message: str | None = None) -> Message:
    """The response of the request's API with `code` wherever it has room for one."""
    response = response_class(request.API_KEY)()
    _fill(request, response, version, code, message)
    return response


def _fill(asked: object, answer: Struct, version: int, code: int, text: str | None) -> None:
    owner = answer.OWNER
    for name, field in answer.FIELDS.items():
        if version not in field.versions:
            continue
        if name in _CODES:
            setattr(answer, name, int(code))
        elif name in _TEXTS:
            setattr(answer, name, text)
        elif field.kind == "array" and _tells_errors(owner, field.element):
            element = getattr(owner, field.element)
            items = _counterpart(asked, element, version)
            mirrored = [element() for _ in items]
            for item, entry in zip(items, mirrored, strict=True):
                _fill(item, entry, version, code, text)
            setattr(answer, name, mirrored)
        elif field.kind != "array" and field.kind not in _BYTES:
            _copy(asked, answer, name, field, version)


@cache
def _tells_errors(owner: type[Message], element: str) -> bool:
    """Whether a structure has an error code, in itself or further inside."""
    shape = getattr(owner, element, None)
    if shape is None:
        return False
    return not _CODES.isdisjoint(shape.FIELDS) or any(
        _tells_errors(owner, field.element)
        for field in shape.FIELDS.values()
        if field.kind == "array"
    )


def _counterpart(asked: object, element: type[Struct], version: int) -> list[object]:
    """What in the request the response's list of `element` answers, entry by entry: what is in
    the most similar lists, or else in those inside them (AlterReplicaLogDirs lists topics below
    paths)."""
    lists = [
        getattr(asked, name) or []
        for name, field in getattr(asked, "FIELDS", {}).items()
        if field.kind == "array" and version in field.versions
    ]
    scores = [_likeness(items[0], element) if items else 0 for items in lists]
    best = max(scores, default=0)
    if best == 0:
        inner = (_counterpart(item, element, version) for items in lists for item in items)
        return [found for founds in inner for found in founds]
    return [
        item for items, score in zip(lists, scores, strict=True) if score == best for item in items
    ]


def _likeness(item: object, element: type[Struct]) -> int:
    if not isinstance(item, Struct):  # a list of plain names or numbers
        return 1 if _first_of(item, element) else 0
    wanted = {_SAME.get(name, name) for name in element.FIELDS}
    given = {_SAME.get(name, name) for name in item.FIELDS}
    # Results that name nothing (of the ACL requests) answer entry by entry.
    return len(wanted & given) or int(_names_nothing(element))


@cache
def _names_nothing(element: type[Struct]) -> bool:
    return all(
        field.kind == "array" or name in _CODES or name in _TEXTS
        for name, field in element.FIELDS.items()
    )


def _copy(asked: object, answer: Struct, name: str, field: Field, version: int) -> None:
    if not isinstance(asked, Struct):
        if name == _first_of(asked, type(answer)):
            setattr(answer, name, asked)
        return
    for given in asked.FIELDS:
        if (
            _SAME.get(given, given) == _SAME.get(name, name)
            and asked.FIELDS[given].kind == field.kind
        ):
            value = getattr(asked, given)
            if value is not None or version in field.nullable:  # null is said in requests only
                setattr(answer, name, value)


def _first_of(value: object, shape: type[Struct]) -> str | None:
    """The field that a plain value in the request's list goes to: the first of its type."""
    kind = {str: "string", int: "int32"}.get(type(value))
    return next((name for name, field in shape.FIELDS.items() if field.kind == kind), None)
