"""Making structs: source text that becomes functions, `__init__`, and default values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from semel.wire.schema import UNSET, Field, Struct, StructMeta


class Source:
    """Lines of Python with their indentation, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.depth = 0
        self._serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, stem: str, value: Any) -> str:
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def function(self, name: str, filename: str) -> Callable[..., Any]:
        text = "\n".join(self.lines)
        exec(compile(text, filename, "exec"), self.names)
        function: Callable[..., Any] = self.names[name]
        function.__doc__ = text  # what was compiled, for whoever wants to look
        return function


def compile_init(cls: type[Struct]) -> Callable[..., None]:
    """`__init__` with one keyword per field."""
    source = Source()
    source.names["UNSET"] = UNSET
    parameters = []
    body = []
    for field in cls.FIELDS.values():
        name, value = field.name, default_expression(source, cls, field)
        if is_fresh(field):
            parameters.append(f"{name}=UNSET")
            body.append(f"self.{name} = {value} if {name} is UNSET else {name}")
        else:
            parameters.append(f"{name}={value}")
            body.append(f"self.{name} = {name}")
    source.line(
        f"def __init__(self, *, {', '.join(parameters)}):" if parameters else "def __init__(self):"
    )
    source.depth = 1
    for text in body or ["pass"]:
        source.line(text)
    return source.function("__init__", f"<{cls.__name__}.__init__>")


def is_fresh(field: Field) -> bool:
    """Whether every new struct gets a default of its own, because it could be changed."""
    return field.default is UNSET and (field.kind == "array" or field.tag is None)


def default_expression(source: Source, cls: type[Struct], field: Field) -> str:
    """Python text for a field's default value."""
    if field.default is UNSET:
        if field.kind == "array":
            return "[]"
        struct_class = getattr(cls.OWNER, field.element)
        if field.tag is None:
            return source.constant("Nested", struct_class) + "()"
        return source.constant("default", shared_default(struct_class))
    if field.default is None or type(field.default) in (bool, int, str, bytes):
        return repr(field.default)
    return source.constant("default", field.default)


def blank_maker(cls: type[Struct]) -> Callable[[], Any]:
    """Makes structs with nothing in them, for decoders to fill.

    It is a subclass without the `__init__` of ours: calling it costs half of `object.__new__(cls)`.
    """
    blank: Any = StructMeta(
        cls.__name__, (cls,), {"__init__": object.__init__, "__qualname__": cls.__qualname__}
    )
    blank.FIELDS = cls.FIELDS
    return blank  # type: ignore[no-any-return]


_shared: dict[type[Struct], Struct] = {}


def shared_default(cls: type[Struct]) -> Struct:
    """The one struct of defaults that stands wherever a tagged struct was not given.

    Shared, because a Fetch response has three per partition and hardly ever sets one; frozen,
    because it is shared: to set a field, assign a new struct.
    """
    default = _shared.get(cls)
    if default is None:
        default = cls()
        frozen: Any = StructMeta(cls.__name__, (cls,), {"__setattr__": _refuse})
        frozen.FIELDS = cls.FIELDS
        default.__class__ = frozen
        _shared[cls] = default
    return default


def _refuse(self: Struct, name: str, value: object) -> None:
    kind = type(self).__name__
    raise AttributeError(f"this {kind} is the shared default: assign a new {kind} instead")
