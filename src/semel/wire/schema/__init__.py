"""The notation in which messages are written, and the base classes that make it work.

    class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
        transactional_id: str = string()
        producer_id: int = int64()
        producer_epoch: int = int16()
        committed: bool = boolean()

A field says its type twice on purpose: the annotation is for people and mypy, the call on the right
is what goes over the wire. A call takes the default first and then, all optional,

    versions="3-9"     the versions that have the field (all, if not said)
    nullable="8+"      the versions in which null is allowed
    tag=0              a tagged field, in all its (flexible) versions
    ignorable=True     silently dropped by versions without it, as in Kafka's schemas; otherwise
                       encoding anything but the default into such a version is an error

Structures are `Struct` classes nested flat in their message and are named by a string:
`topics: list[FetchRequest.FetchTopic] = array("FetchTopic")`.

Fields have Kafka's names in snake_case and Kafka's defaults; a message takes any subset of them by
keyword. Unknown tagged fields are dropped when decoding. A struct that is the default of a tagged
field is shared and frozen: to change it, assign a new one. Malformed bytes raise `ProtocolError`,
nothing else.

Making a class is cheap. `__init__`, decoders and encoders are compiled when first used, the latter
two per version (see `compile_decode` and `compile_encode`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

from semel.wire.errors import ProtocolError
from semel.wire.primitives import NO_UUID, Buffer

# What a records field holds: a memoryview of the frame after decoding; to encode, bytes, any other
# buffer, or something with a length that is not a buffer (a region of a file).
Records = Any

# Tagged fields with numbers from here on are Semel's own; every other client skips them.
OWN_TAGS = 10_000

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "UNSET", "__slots__": ()})()
_LAST = 0x7FFF  # versions are 16 bits: "3+" means up to here
_NEVER = range(0)


@cache
def version_range(text: str) -> range:
    """ "3-9", "3+", "3" or "none" as a range."""
    if text == "none":
        return _NEVER
    low, dash, high = text.rstrip("+").partition("-")
    first = int(low)
    return range(first, (int(high) if dash else _LAST if text.endswith("+") else first) + 1)


class Field:
    """What the schema says about one field."""

    __slots__ = ("default", "element", "ignorable", "kind", "name", "nullable", "tag", "versions")

    def __init__(
        self,
        kind: str,
        default: Any,
        versions: str,
        nullable: str,
        tag: int | None,
        ignorable: bool,
        element: str = "",
    ) -> None:
        self.name = ""
        self.kind = kind
        self.default = default
        self.versions = version_range(versions)
        self.nullable = version_range(nullable)
        self.tag = tag
        self.ignorable = ignorable
        self.element = element  # of an array: a kind, or like a nested field's the struct's name


class FieldType:
    """A primitive type. Called in a class body it makes a field; uncalled it names an element."""

    def __init__(self, name: str, zero: Any) -> None:
        self.name = name
        self.zero = zero

    def __call__(
        self,
        default: Any = UNSET,
        *,
        versions: str = "0+",
        nullable: str = "none",
        tag: int | None = None,
        ignorable: bool = False,
    ) -> Any:
        value = self.zero if default is UNSET else default
        return Field(self.name, value, versions, nullable, tag, ignorable)


boolean = FieldType("boolean", False)
int8 = FieldType("int8", 0)
int16 = FieldType("int16", 0)
uint16 = FieldType("uint16", 0)
int32 = FieldType("int32", 0)
int64 = FieldType("int64", 0)
float64 = FieldType("float64", 0.0)
uuid = FieldType("uuid", NO_UUID)
string = FieldType("string", "")
binary = FieldType("binary", b"")
records = FieldType("records", None)

# The struct codes of the kinds with a fixed size.
FIXED = {
    "boolean": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}


def array(
    element: FieldType | str,
    default: Any = UNSET,
    *,
    versions: str = "0+",
    nullable: str = "none",
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """An array of a primitive kind, or of the struct named; empty unless said otherwise."""
    name = element if isinstance(element, str) else element.name
    return Field("array", default, versions, nullable, tag, ignorable, name)


def nested(
    struct_name: str,
    default: Any = UNSET,
    *,
    versions: str = "0+",
    nullable: str = "none",
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """One struct inside another; a struct of defaults unless said otherwise."""
    return Field("nested", default, versions, nullable, tag, ignorable, struct_name)


@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Turns the fields of a class body into slots."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> StructMeta:
        fields = {key: value for key, value in namespace.items() if type(value) is Field}
        for key, field in fields.items():
            field.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace["FIELDS"] = fields
        return super().__new__(mcs, name, bases, namespace, **options)


class Struct(metaclass=StructMeta):
    """A structure inside a message. Takes any subset of its fields by keyword."""

    FIELDS: ClassVar[Mapping[str, Field]]
    OWNER: ClassVar[type[Message]]

    def __init__(self, **values: Any) -> None:
        from semel.wire.schema.construct import compile_init

        cls = type(self)
        setattr(cls, "__init__", compile_init(cls))  # noqa: B010  (mypy forbids the assignment)
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.FIELDS is not other.FIELDS:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # messages can be changed

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__qualname__}({values})"


class _Codecs(dict[int, Callable[..., Any]]):
    """The compiled functions of one message by version; a missing one is compiled."""

    __slots__ = ("_compile", "_message")

    def __init__(self, message: type[Message], compile_codec: Callable[..., Any]) -> None:
        self._message = message
        self._compile = compile_codec

    def __missing__(self, version: int) -> Callable[..., Any]:
        self._message.require(version)
        codec: Callable[..., Any] = self._compile(self._message, version)
        self[version] = codec
        return codec


class Message(Struct):
    """A request, a response, or the key or value of a record that a coordinator writes."""

    API_KEY: ClassVar[int]  # of a coordinator's record: the type that its key begins with
    VERSIONS: ClassVar[range]
    FLEXIBLE: ClassVar[range]
    _decoders: ClassVar[_Codecs]
    _view_decoders: ClassVar[_Codecs]
    _encoders: ClassVar[_Codecs]

    def __init_subclass__(
        cls, *, api_key: int = -1, versions: str = "0", flexible: str = "none", **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        cls.API_KEY = api_key
        cls.VERSIONS = version_range(versions)
        cls.FLEXIBLE = version_range(flexible)
        cls.OWNER = cls
        for value in tuple(vars(cls).values()):
            if type(value) is StructMeta:
                value.OWNER = cls  # type: ignore[attr-defined]
        cls._encoders = _Codecs(cls, _compile_encoder)
        cls._decoders = _Codecs(cls, _compile_decoder)
        cls._view_decoders = _Codecs(cls, _compile_view_decoder)

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return version in cls.FLEXIBLE

    @classmethod
    def require(cls, version: int) -> None:
        if version not in cls.VERSIONS:
            raise ProtocolError(f"{cls.__name__} has no version {version}")

    @classmethod
    def decode(cls, buffer: Buffer, position: int, version: int) -> tuple[Self, int]:
        """The message that begins at `position`, and the position after it."""
        decoders = cls._view_decoders if type(buffer) is memoryview else cls._decoders
        return decoders[version](buffer, position)  # type: ignore[no-any-return]

    def encode(self, out: bytearray, version: int) -> None:
        """Append the message to `out`. After an error `out` holds a part of it: throw it away."""
        self._encoders[version](self, out)


def _compile_decoder(message: type[Message], version: int) -> Callable[..., Any]:
    from semel.wire.schema.compile_decode import compile_decoder

    return compile_decoder(message, version, of_views=False)


def _compile_view_decoder(message: type[Message], version: int) -> Callable[..., Any]:
    from semel.wire.schema.compile_decode import compile_decoder

    return compile_decoder(message, version, of_views=True)


def _compile_encoder(message: type[Message], version: int) -> Callable[..., Any]:
    from semel.wire.schema.compile_encode import compile_encoder

    return compile_encoder(message, version)
