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
from semel.wire.construct import Source, default_expression
from semel.wire.errors import ProtocolError
from semel.wire.schema import FIXED, Field, Message, Struct


def compile_encoder(message: type[Message], version: int) -> Callable[..., Any]:
    """`encode(message, out)`."""
    return _Encoder(message, version).compile()


def _explained(message: Message, version: int, error: Exception) -> ProtocolError:
    from semel.wire.diagnose import what_is_wrong

    return ProtocolError(what_is_wrong(message, version) or str(error))


class _Encoder(Source):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__()
        self.message = message
        self.version = version
        self.flexible = message.is_flexible(version)
        self.out = "w"  # the bytearray that is written to; tagged fields get one of their own
        self.run: list[tuple[str, str]] = []  # (expression, struct code) not yet written
        for helper in (
            primitives.uvarint, primitives.string_length,
            primitives.append_tags, primitives.append_records,
        ):  # fmt: skip
            self.names[helper.__name__] = helper
        self.names["faults"] = (struct.error, AttributeError, TypeError, ValueError)
        self.names["explained"] = _explained
        self.names["pack"] = struct.pack
        self.names["plain"] = frozenset((bytes, bytearray, memoryview))

    def compile(self) -> Callable[..., Any]:
        self.line("def encode(m, w):")
        self.depth = 1
        self.line("try:")
        self.depth = 2
        self.struct(self.message, "m")
        self.flush()
        self.line("return")
        self.depth = 1
        self.line("except faults as error:")
        self.line(f"    raise explained(m, {self.version}, error) from error")
        return self.function("encode", f"<{self.message.__name__} v{self.version} encode>")

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
            self.tags(cls, tagged, it)

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
            self.line(f"{self.out} += {self.packed()}")
            self.run.clear()

    def packed(self, *more: tuple[str, str]) -> str:
        run = [*self.run, *more]
        codes = "".join(code for _, code in run)
        if not codes.strip("x"):
            return repr(bytes(len(codes)))
        pack = f"pack_{codes}"
        self.names[pack] = struct.Struct(">" + codes).pack
        return f"{pack}({', '.join(value for value, code in run if code != 'x')})"

    def length(self, kind: str) -> None:
        """Write n: the length, in flexible versions one more, so that zero is null."""
        if not self.flexible:
            self.run.append(("n", "h" if kind == "string" else "i"))
            self.flush()
            return
        self.line(f"if n < 128: {self.out} += {self.packed(('n', 'B'))}")
        long = "string_length(n)" if kind == "string" else "uvarint(n)"
        before = f"{self.packed()} + " if self.run else ""
        self.line(f"else: {self.out} += {before}{long}")
        self.run.clear()

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
        one_more = " + 1" if self.flexible else ""
        convert = ".encode()" if field.kind == "string" else ""
        if self.version in field.nullable:
            self.line(f"{x} = {value}")
            self.line(f"if {x} is None:")
            self.line(f"    {x} = b''")
            self.line("    n = 0" if self.flexible else "    n = -1")
            self.line("else:")
            if convert:
                self.line(f"    {x} = {x}{convert}")
            self.line(f"    n = len({x}){one_more}")
        else:
            self.line(f"{x} = {value}{convert}")
            self.line(f"n = len({x}){one_more}")
        self.length(field.kind)
        if field.kind == "records":
            self.line(f"if type({x}) in plain: {self.out} += {x}")
            self.line(f"else: append_records({self.out}, {x})")
        else:
            self.line(f"{self.out} += {x}")

    def array(self, field: Field, value: str) -> None:
        items = self.fresh("items")
        one_more = " + 1" if self.flexible else ""
        self.line(f"{items} = {value}")
        if self.version in field.nullable:
            null = 0 if self.flexible else -1
            self.line(f"n = {null} if {items} is None else len({items}){one_more}")
        else:
            self.line(f"n = len({items}){one_more}")
        self.length("array")
        if field.element in FIXED:
            self.fixed_array(field, items)
            return
        item = self.fresh("m")
        loop_over = f"{items} or ()" if self.version in field.nullable else items
        self.line(f"for {item} in {loop_over}:")
        self.depth += 1
        if field.element == "string":
            self.line(f"x = {item}.encode()")
            self.line(f"n = len(x){one_more}")
            self.length("string")
            self.line(f"{self.out} += x")
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

    def tags(self, cls: type[Struct], tagged: list[tuple[Field, str]], it: str) -> None:
        """The tag section: only what differs from its default, in order of number."""
        if not tagged:
            self.run.append(("", "x"))
            return
        self.flush()
        tagged.sort(key=lambda pair: pair[0].tag or 0)
        section, out = self.fresh("tags"), self.out
        self.line(f"{section} = ()")
        for field, value in tagged:
            self.line(f"if {self.differs(cls, field, value)}:")
            self.depth += 1
            self.out = self.fresh("w")
            self.line(f"{self.out} = bytearray()")
            self.field(field, value)
            self.flush()
            self.line(f"{section} += (({field.tag}, {self.out}),)")
            self.out = out
            self.depth -= 1
        self.line(f"if {section}: append_tags({out}, {section})")
        self.line(f"else: {out} += b'\\0'")
