"""Compiles a message's encoder for one version: straight-line Python that appends bytes.

Neighbouring fields of fixed size, the length that follows them and an empty tag section are written
by one struct call. Nothing is checked beforehand: a value that does not fit makes the
struct call or the length fail, and `diagnose` then finds out which it was.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from semel.wire import primitives
from semel.wire.errors import ProtocolError
from semel.wire.schema import FIXED, Field, Message, Struct
from semel.wire.schema.construct import Source, default_expression


def compile_encoder(message: type[Message], version: int) -> Callable[..., Any]:
    """`encode(message, out)`."""
    return _Encoder(message, version).compile_encoder()


def compile_writer(
    message: type[Message], version: int, frame: type[bytearray], header_has_tags: bool
) -> Callable[..., Any]:
    """`write(message, correlation_id) -> sealed frame` of a response; `frame` is what to make."""
    return _Encoder(message, version).compile_writer(frame, header_has_tags)


def _explained(message: Message, version: int, error: Exception) -> ProtocolError:
    from semel.wire.schema.diagnose import what_is_wrong

    return ProtocolError(what_is_wrong(message, version) or str(error))


class _Encoder(Source):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__()
        self.message = message
        self.version = version
        self.flexible = message.is_flexible(version)
        self.out = "w"  # the bytearray that is written to; tagged fields get one of their own
        self.run: list[tuple[str, str]] = []  # (expression, struct code) not yet written
        self.opens = False  # whether the first write makes what is written to
        for helper in (
            primitives.append_tags, primitives.append_records,
        ):  # fmt: skip
            self.names[helper.__name__] = helper
        self.names["lengths"] = primitives.compact_lengths
        self.names["string_lengths"] = primitives.compact_string_lengths
        self.names["faults"] = (struct.error, AttributeError, TypeError, ValueError)
        self.names["explained"] = _explained
        self.names["pack"] = struct.pack
        self.names["plain"] = frozenset((bytes, bytearray, memoryview))

    def compile_encoder(self) -> Callable[..., Any]:
        self.line("def encode(m, w):")
        self.guarded(self.body)
        return self.named("encode")

    def compile_writer(self, frame: type[bytearray], header_has_tags: bool) -> Callable[..., Any]:
        self.names["Frame"] = frame
        self.names["set_length"] = struct.Struct(">i").pack_into
        self.line("def write(m, correlation_id):")
        self.run += [("0", "i"), ("correlation_id", "i"), *[("", "x")] * header_has_tags]
        self.opens = True
        self.guarded(self.sealed_body)
        return self.named("write")

    def named(self, name: str) -> Callable[..., Any]:
        return self.function(name, f"<{self.message.__name__} v{self.version} {name}>")

    def guarded(self, body: Callable[[], None]) -> None:
        self.depth = 1
        self.line("try:")
        self.depth = 2
        body()
        self.depth = 1
        self.line("except faults as error:")
        self.line(f"    raise explained(m, {self.version}, error) from error")

    def body(self) -> None:
        self.struct(self.message, "m")
        self.flush()
        self.line("return")

    def sealed_body(self) -> None:
        self.struct(self.message, "m")
        if self.opens:  # all is of fixed size, the length known beforehand
            size = struct.calcsize(">" + "".join(code for _, code in self.run))
            self.run[0] = (str(size - 4), "i")
            self.flush()
        else:
            self.flush()
            has_records = any("append_records(w," in line for line in self.lines)
            self.line("w.seal()" if has_records else "set_length(w, 0, len(w) - 4)")
        self.line("return w")

    def struct(self, cls: type[Struct], it: str) -> None:
        tagged = []
        for field in cls.FIELDS.values():
            value = f"{it}.{field.name}"
            if self.version not in field.versions:
                if not field.ignorable:
                    self.refuse(cls, field, value)
            elif field.tag is None:
                self.field(field, value)
            else:
                tagged.append((field, value))
        if self.flexible:
            self.tags(cls, tagged)

    def refuse(self, cls: type[Struct], field: Field, value: str) -> None:
        """A value that this version cannot carry may not be lost unseen."""
        self.line(f"if {self.differs(cls, field, value)}: raise ValueError({field.name!r})")

    def differs(self, cls: type[Struct], field: Field, value: str) -> str:
        default = default_expression(self, cls, field)
        if default == "None":
            return f"{value} is not None"
        if field.kind == "nested":
            return f"{value} is not {default} and {value} != {default}"
        if default == "[]":
            return f"{value} or {value} is None"
        return f"{value} != {default}"

    def field(self, field: Field, value: str) -> None:
        if field.kind in FIXED:
            self.fixed(field.kind, value)
        elif field.kind == "nested":
            self.nested(field, value)
        elif field.kind == "array":
            self.array(field, value)
        else:
            self.sized(field, value)

    def fixed(self, kind: str, value: str) -> None:
        if kind == "uuid":
            self.run.append((f"{value}.bytes", FIXED[kind]))
        else:
            # Not "?", which would take null for false.
            self.run.append((value, "b" if kind == "boolean" else FIXED[kind]))

    def flush(self) -> None:
        """Write the pending run of fixed-size values."""
        if self.run:
            self.write()

    def write(self, *parts: str) -> None:
        """Append the pending run and then these."""
        text = " + ".join((self.packed(), *parts) if self.run else parts)
        self.line(f"w = Frame({text})" if self.opens else f"{self.out} += {text}")
        self.opens = False
        self.run.clear()

    def packed(self) -> str:
        codes = "".join(code for _, code in self.run)
        if not codes.strip("x"):
            return repr(bytes(len(codes)))
        pack = f"pack_{codes}"
        self.names[pack] = struct.Struct(">" + codes).pack
        return f"{pack}({', '.join(value for value, code in self.run if code != 'x')})"

    def length(self, kind: str, value: str, *parts: str) -> None:
        """Write how long the value is, in flexible versions one more, so that zero is null; and
        then these."""
        if self.flexible:
            table = "string_lengths" if kind == "string" else "lengths"
            self.write(f"{table}[len({value})]", *parts)
        else:
            self.run.append((f"len({value})", "h" if kind == "string" else "i"))
            self.write(*parts)

    def null_length(self, kind: str) -> str:
        if self.flexible:
            return repr(b"\0")
        return repr(b"\xff\xff" if kind == "string" else b"\xff\xff\xff\xff")

    def nested(self, field: Field, value: str) -> None:
        cls = getattr(self.message, field.element)
        it = self.fresh("m")
        self.line(f"{it} = {value}")
        if self.version not in field.nullable:
            self.struct(cls, it)
            return
        self.flush()
        null = b"\xff" if field.tag is None else b"\0"  # see compile_decode
        self.line(f"if {it} is None: {self.out} += {null!r}")
        self.line("else:")
        self.depth += 1
        self.run.append(("1", "b"))
        self.struct(cls, it)
        self.flush()
        self.depth -= 1

    def sized(self, field: Field, value: str) -> None:
        """A string, bytes or records: the length and then the bytes."""
        x = self.fresh("x")
        if self.version not in field.nullable:
            self.content(field.kind, x, value)
            return
        self.flush()
        self.line(f"{x} = {value}")
        self.line(f"if {x} is None: {self.out} += {self.null_length(field.kind)}")
        self.line("else:")
        self.depth += 1
        self.content(field.kind, x, x)
        self.depth -= 1

    def content(self, kind: str, x: str, value: str) -> None:
        """What is not null; `x` is the variable to use."""
        if kind == "string":
            self.line(f"{x} = {value}.encode()")
            self.length(kind, x, x)
            return
        if x != value:
            self.line(f"{x} = {value}")
        self.length(kind, x)
        if kind == "records":
            self.line(f"if type({x}) in plain: {self.out} += {x}")
            self.line(f"else: append_records({self.out}, {x})")
        else:
            self.line(f"{self.out} += {x}")

    def array(self, field: Field, value: str) -> None:
        items = self.fresh("items")
        self.line(f"{items} = {value}")
        if self.version in field.nullable:
            self.flush()
            self.line(f"if {items} is None: {self.out} += {self.null_length('array')}")
            self.line("else:")
            self.depth += 1
            self.elements(field, items)
            self.depth -= 1
        else:
            self.elements(field, items)

    def elements(self, field: Field, items: str) -> None:
        self.length("array", items)
        if field.element in FIXED:
            self.fixed_array(field, items)
            return
        item = self.fresh("m")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if field.element == "string":
            self.content("string", "x", item)
        else:
            self.struct(getattr(self.message, field.element), item)
            self.flush()
        self.depth -= 1

    def fixed_array(self, field: Field, items: str) -> None:
        code = FIXED[field.element]
        short = self.constant("packers", primitives.array_packers(code))
        self.line(f"if {items}:")
        self.line(f"    n = len({items})")
        self.line(f"    if n < {primitives.SHORT_ARRAY}: {self.out} += {short}[n](*{items})")
        self.line(f"    else: {self.out} += pack('>%d{code}' % n, *{items})")

    def tags(self, cls: type[Struct], tagged: list[tuple[Field, str]]) -> None:
        """The tag section: only what differs from its default, in order of number."""
        if not tagged:
            self.run.append(("", "x"))
            return
        self.flush()
        if len(tagged) == 1:
            pair = self.tag(cls, *tagged[0])
            self.line(f"    append_tags({self.out}, ({pair},))")
        else:
            section = self.fresh("tags")
            self.line(f"{section} = ()")
            for field, value in sorted(tagged, key=lambda pair: pair[0].tag or 0):
                pair = self.tag(cls, field, value)
                self.line(f"    {section} += ({pair},)")
            self.line(f"if {section}: append_tags({self.out}, {section})")
        self.line(f"else: {self.out} += b'\\0'")

    def tag(self, cls: type[Struct], field: Field, value: str) -> str:
        """If there is something to say, write it apart; an expression of the tag with it."""
        out, self.out = self.out, self.fresh("w")
        self.line(f"if {self.differs(cls, field, value)}:")
        self.depth += 1
        self.line(f"{self.out} = bytearray()")
        self.field(field, value)
        self.flush()
        self.depth -= 1
        pair = f"({field.tag}, {self.out})"
        self.out = out
        return pair
