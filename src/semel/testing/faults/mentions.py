"""Which topics, groups and transactional ids a request is about, and which errors an answer has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from semel.wire.errors import ErrorCode
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.schema import Message, Struct

_IDS = {"transactional_id", "v3_and_below_transactional_id"}
_TOPICS = {"name", "topic", "topic_name"}
_CODES = {"error_code", "partition_error_code"}
_NO_ID = UUID(int=0)
OF_GROUPS, OF_TRANSACTIONS = 0, 1


@dataclass(slots=True)
class Mentions:
    """What a request names, in its order."""

    transactional_ids: list[str] = field(default_factory=list)
    group_ids: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    topic_ids: list[UUID] = field(default_factory=list)


def mentions(request: Message) -> Mentions:
    found = Mentions()
    if isinstance(request, FindCoordinatorRequest):
        keys = [key for key in (request.key, *request.coordinator_keys) if key]
        if request.key_type == OF_TRANSACTIONS:
            found.transactional_ids += keys
        elif request.key_type == OF_GROUPS:
            found.group_ids += keys
        return found
    for struct in _structs(request):
        for name in struct.FIELDS:
            _note(found, struct, name, getattr(struct, name, None))
    return found


def _note(found: Mentions, struct: Struct, name: str, value: object) -> None:
    if isinstance(value, str) and value:
        if name in _IDS:
            found.transactional_ids.append(value)
        elif name == "group_id":
            found.group_ids.append(value)
        elif name in _TOPICS and _is_topic(struct):
            found.topics.append(value)
    elif isinstance(value, UUID) and name == "topic_id" and value != _NO_ID:
        found.topic_ids.append(value)
    elif name == "topic_names" and isinstance(value, list):
        found.topics += [each for each in value if isinstance(each, str)]


def _is_topic(struct: Struct) -> bool:
    """Kafka's names of structures tell whose `name` it is."""
    kind = type(struct).__name__
    return "Topic" in kind and not kind.endswith(("Config", "Request"))


def errors_of(answer: Message) -> list[ErrorCode]:
    """The errors in an answer, each once."""
    codes = {
        getattr(struct, name)
        for struct in _structs(answer)
        for name in struct.FIELDS
        if name in _CODES
    }
    return [error for error in ErrorCode if error in codes and error]


def _structs(struct: Struct) -> Iterator[Struct]:
    """It, and all inside it."""
    yield struct
    for name in struct.FIELDS:
        value = getattr(struct, name, None)
        for inner in value if isinstance(value, list) else (value,):
            if isinstance(inner, Struct):
                yield from _structs(inner)
