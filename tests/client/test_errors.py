"""The family of errors: whole, in one place, and able to cross processes."""

import copy
import inspect
import pickle

import pytest

from semel import client, errors
from semel.client import ConsumerRecord, TopicPartition, blocking
from semel.errors import DeserializationError, ErrorCode, SemelError, TruncatedError

PLACE = TopicPartition("t", 3)
RECORD = ConsumerRecord("t", 3, 7, 0, b"k", b"v")
KINDS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SemelError)
]


def an(kind: type[SemelError]) -> SemelError:
    if kind is TruncatedError:
        return TruncatedError(PLACE, 9, 4)
    if kind is DeserializationError:
        return DeserializationError("the value cannot be read", RECORD)
    return kind("what happened", ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_crosses_processes_whole(kind: type[SemelError]) -> None:
    error = an(kind)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.code is error.code
        assert vars(again) == vars(error)


def test_every_error_is_exported_and_has_one_of_three_kinds() -> None:
    for kind in KINDS:
        assert kind.__name__ in errors.__all__
        assert kind.__name__ in (errors.__doc__ or ""), "the family's tree names every member"
        ways = (errors.RetriableError, errors.AbortableError, errors.FatalError)
        assert kind is SemelError or issubclass(kind, ways)


def test_what_the_client_exports_is_what_type_checkers_are_told() -> None:
    for module in (client, blocking):
        told = {
            line.split()[-1]
            for line in inspect.getsource(module).splitlines()
            if line.startswith("    from semel.")
        }
        assert told == set(module.__all__)
        assert all(getattr(module, name) for name in module.__all__)
