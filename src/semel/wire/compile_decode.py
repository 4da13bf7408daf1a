"""Compiles a message's decoder for one version: straight-line Python that reads bytes.

Neighbouring fields of fixed size, and the length or tag count that follows them, are read by one
struct call. Bounds cost little: positions only grow, so a slice past the end is caught by the next
read or by the one check at the end; only arrays are checked at once, since their length decides how
often a loop runs (an element takes at least a byte, so a length beyond the bytes left is a lie).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from semel.wire import primitives
from semel.wire.construct import Source, default_expression
from semel.wire.schema import FIXED, Field, Message, Struct


def compile_decoder(message: type[Message], version: int, of_views: bool) -> Callable[..., Any]:
    """`decode(buffer, position) -> (message, end)` for bytes and bytearrays, or for memoryviews."""
    return _Decoder(message, version, of_views).compile()


class _Decoder(Source):
    def __init__(self, message: type[Message], version: int, of_views: bool) -> None:
        super().__init__()
        self.message = message
        self.version = version
        self.of_views = of_views
        self.flexible = message.is_flexible(version)
        self.run: list[tuple[str, str]] = []  # (target, struct code) not yet read
        self.after: list[str] = []  # what to do once they are
        for helper in (
            primitives.read_uvarint, primitives.read_string_length, primitives.skip_tags,
            primitives.uuid_of, primitives.null, primitives.bad_length, primitives.bad_tag,
            primitives.truncated,
        ):  # fmt: skip
            self.names[helper.__name__] = helper
        self.names["new"] = object.__new__
        self.names["unpack_from"] = struct.unpack_from

    def compile(self) -> Callable[..., Any]:
        self.line("def decode(b, p):")
        self.depth = 1
        self.line("end = len(b)")
        self.line("view = b" if self.of_views else "view = memoryview(b)")
        whole = self.struct(self.message)
        self.flush()
        self.line("if p > end: raise truncated()")
        self.line(f"return {whole}, p")
        if not any("view[" in line for line in self.lines):
            self.lines.pop(2)
        return self.function("decode", f"<{self.message.__name__} v{self.version} decode>")

    def struct(self, cls: type[Struct]) -> str:
        """Read one struct into a new variable."""
        it = self.fresh("m")
        self.line(f"{it} = new({self.constant('Struct', cls)})")
        tagged = []
        for field in cls.FIELDS.values():
            target = f"{it}.{field.name}"
            present = self.version in field.versions
            if present and field.tag is None:
                self.field(field, target)
            else:
                self.line(f"{target} = {default_expression(self, cls, field)}")
                if present:
                    tagged.append((field, target))
        if self.flexible:
            self.tags(tagged)
        return it

    def field(self, field: Field, target: str) -> None:
        if field.kind in FIXED:
            self.fixed(field.kind, target)
        elif field.kind == "nested":
            self.nested(field, target)
        else:
            self.sized(field, target)

    def fixed(self, kind: str, target: str) -> None:
        if kind == "uuid":
            raw = self.fresh("raw")
            self.run.append((raw, FIXED[kind]))
            self.after.append(f"{target} = uuid_of({raw})")
        else:
            self.run.append((target, FIXED[kind]))

    def flush(self) -> None:
        """Read the pending run of fixed-size values."""
        if not self.run:
            return
        codes = ">" + "".join(code for _, code in self.run)
        unpack = f"unpack_{codes[1:].replace('?', 'B_')}"
        self.names[unpack] = struct.Struct(codes).unpack_from
        if len(self.run) == 1 and codes == ">B":
            self.line(f"{self.run[0][0]} = b[p]")
        else:
            self.line(f"{', '.join(target for target, _ in self.run)}, = {unpack}(b, p)")
        self.line(f"p += {struct.calcsize(codes)}")
        for text in self.after:
            self.line(text)
        self.run.clear()
        self.after.clear()

    def nested(self, field: Field, target: str) -> None:
        cls = getattr(self.message, field.element)
        if self.version not in field.nullable:
            self.line(f"{target} = {self.struct(cls)}")
            return
        # KIP-893: a byte before the struct, negative for null; in a tagged field zero is null too,
        # for there Kafka's MessageDataGenerator writes a varint.
        self.run.append(("n", "b"))
        self.flush()
        self.line(f"if n {'<' if field.tag is None else '<='} 0: {target} = None")
        self.line("else:")
        self.depth += 1
        it = self.struct(cls)
        self.flush()
        self.line(f"{target} = {it}")
        self.depth -= 1

    def sized(self, field: Field, target: str) -> None:
        """A value that begins with its length, or with a mark for null."""
        if self.flexible:
            self.compact_length("read_string_length" if field.kind == "string" else "read_uvarint")
            self.line("if n:")
        else:
            self.run.append(("n", "h" if field.kind == "string" else "i"))
            self.flush()
            self.line("if n >= 0:")
        self.depth += 1
        if field.kind == "array":
            self.array(field, target)
        else:
            self.line("q = p + n - 1" if self.flexible else "q = p + n")
            self.line(f"{target} = {self.slice(field.kind)}")
            self.line("p = q")
        self.depth -= 1
        name = repr(field.name)
        if not self.flexible:
            self.line(f"elif n < -1: raise bad_length({name}, n)")
        nullable = self.version in field.nullable
        self.line(f"else: {target} = None" if nullable else f"else: raise null({name})")

    def compact_length(self, reader: str) -> None:
        """A compact length into n: one more than the length, zero for null."""
        self.run.append(("n", "B"))
        self.flush()
        self.line(f"if n > 127: n, p = {reader}(b, p - 1)")

    def slice(self, kind: str) -> str:
        if kind == "records":
            return "view[p:q]"
        if kind == "binary":
            return "b[p:q].tobytes()" if self.of_views else "bytes(b[p:q])"
        return "b[p:q].tobytes().decode()" if self.of_views else "b[p:q].decode()"

    def array(self, field: Field, target: str) -> None:
        count = "n - 1" if self.flexible else "n"
        if field.element in FIXED:
            self.fixed_array(field, target, count)
            return
        self.line(f"if {count} > end - p: raise bad_length({field.name!r}, {count})")
        items = self.fresh("items")
        self.line(f"{target} = {items} = []")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        if field.element == "string":
            self.string_element(field)
            item = "s"
        else:
            item = self.struct(getattr(self.message, field.element))
        self.flush()
        self.line(f"{items}.append({item})")
        self.depth -= 1

    def fixed_array(self, field: Field, target: str, count: str) -> None:
        """All elements in one call; struct refuses more of them than there are bytes."""
        code = FIXED[field.element]
        size = struct.calcsize(">" + code)
        if field.element == "uuid":
            raise NotImplementedError("arrays of UUIDs appear in no message that we have")
        if self.flexible:
            self.line("n -= 1")
        self.line(f"{target} = list(unpack_from('>%d{code}' % n, b, p))")
        self.line(f"p += n * {size}" if size > 1 else "p += n")

    def string_element(self, field: Field) -> None:
        """A string of an array, into s: null is not allowed there."""
        if self.flexible:
            self.compact_length("read_string_length")
            self.line(f"if not n: raise null({field.name!r})")
            self.line("q = p + n - 1")
        else:
            self.run.append(("n", "h"))
            self.flush()
            self.line(f"if n < 0: raise bad_length({field.name!r}, n)")
            self.line("q = p + n")
        self.line(f"s = {self.slice('string')}")
        self.line("p = q")

    def tags(self, known: list[tuple[Field, str]]) -> None:
        """The tag section that ends every flexible struct. Most are one zero byte."""
        self.run.append(("n", "B"))
        self.flush()
        if not known:
            self.line("if n: p = skip_tags(b, p - 1)")
            return
        self.line("if n:")
        self.depth += 1
        self.line("if n > 127: n, p = read_uvarint(b, p - 1)")
        self.line("for _ in range(n):")
        self.depth += 1
        tag, stop = self.fresh("tag"), self.fresh("stop")
        self.line(f"{tag}, p = read_uvarint(b, p)")
        self.line("n, p = read_uvarint(b, p)")
        self.line(f"{stop} = p + n")
        for number, (field, target) in enumerate(known):
            self.line(f"{'elif' if number else 'if'} {tag} == {field.tag}:")
            self.depth += 1
            self.field(field, target)
            self.flush()
            self.depth -= 1
        self.line(f"else: p = {stop}")
        self.line(f"if p != {stop}: raise bad_tag({tag})")
        self.depth -= 2
