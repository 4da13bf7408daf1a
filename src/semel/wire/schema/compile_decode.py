"""Compiles a message's decoder for one version: straight-line Python that reads bytes.

Neighbouring fields of fixed size, and the length or tag count that follows them, are read by one
struct call. Bounds cost next to nothing: positions only grow, and struct and indexing refuse to
read past the end, so a slice that went too far is found out by the next read, or by a check at the
end where there is none. An array may claim any length: each element reads at least one byte, so
its loop ends with the bytes, and nothing is allocated ahead.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from semel.wire import primitives
from semel.wire.errors import ProtocolError
from semel.wire.schema import FIXED, Field, Message, Struct
from semel.wire.schema.construct import Source, blank_maker, default_expression

_SPANS = primitives.Spans(above=0)
_COMPACT_SPANS = primitives.Spans(above=1)


def compile_decoder(message: type[Message], version: int, of_views: bool) -> Callable[..., Any]:
    """`decode(buffer, position) -> (message, end)` for bytes and bytearrays, or for memoryviews."""
    return _Decoder(message, version, of_views).compile("decode")


def compile_reader(message: type[Message], version: int) -> Callable[..., Any]:
    """`read(buffer, position) -> message` of a request in its frame (a bytearray): `position` is
    the client id's end, so that a flexible header's tags come first."""
    return _Decoder(message, version, of_views=False, in_frame=True).compile("read")


def compile_checker(message: type[Message], version: int) -> Callable[..., None]:
    """`check(buffer, position, most)`: reads like `compile_reader`'s, and refuses a message with
    more than so many elements before it has read many more."""
    budget = primitives.Budget()
    read = _Decoder(message, version, of_views=False, in_frame=True, budget=budget).compile("read")

    def check(buffer: bytearray, position: int, most: int) -> None:
        budget.most = budget.left = most
        read(buffer, position)

    return check


class _Decoder(Source):
    def __init__(
        self,
        message: type[Message],
        version: int,
        of_views: bool,
        in_frame: bool = False,
        budget: primitives.Budget | None = None,
    ) -> None:
        super().__init__()
        self.message = message
        self.version = version
        self.of_views = of_views
        self.in_frame = in_frame
        self.flexible = message.is_flexible(version)
        self.run: list[tuple[str, str]] = []  # (target, struct code) not yet read
        self.after: list[str] = []  # what to do once they are
        self.proven = True  # whether p is known to be within the buffer
        for helper in (
            primitives.read_uvarint, primitives.read_length, primitives.read_string_length,
            primitives.skip_tags, primitives.null, primitives.bad_length, primitives.bad_tag,
            primitives.truncated,
        ):  # fmt: skip
            self.names[helper.__name__] = helper
        self.names["malformed"] = (struct.error, IndexError, UnicodeDecodeError)
        self.names["ProtocolError"] = ProtocolError
        self.names["new"] = object.__new__
        self.names["unpack_from"] = struct.unpack_from
        self.names["known_uuids"] = primitives.known_uuids
        self.names["spans"] = _COMPACT_SPANS if self.flexible else _SPANS
        self.counted = budget is not None
        if budget is not None:
            self.names["spans"] = primitives.CountedSpans(int(self.flexible), budget)
            self.names["skip_tags"] = budget.skip_tags

    def compile(self, name: str) -> Callable[..., Any]:
        self.line(f"def {name}(b, p):")
        self.depth = 1
        self.line("try:")
        self.depth = 2
        self.line("view = b" if self.of_views else "view = memoryview(b)")
        if self.in_frame and self.flexible:
            self.tags([])
        whole = self.struct(self.message)
        self.flush()
        if self.in_frame:
            self.forget_position()
        if not self.proven:
            self.line("if p > len(b): raise truncated()")
        self.line(f"return {whole}" if self.in_frame else f"return {whole}, p")
        self.depth = 1
        self.line("except malformed as error:")
        title = f"{self.message.__name__} v{self.version}"
        self.line(f"    raise ProtocolError(f'{title}: {{error}}') from None")
        if not any("view[" in line for line in self.lines):
            self.lines.pop(2)
        return self.function(name, f"<{title} {name}>")

    def forget_position(self) -> None:
        """Nobody asks where the last read ended."""
        if self.lines[-1].lstrip().removeprefix("else: ").startswith("p += "):
            self.lines.pop()

    def struct(self, cls: type[Struct]) -> str:
        """Read one struct into a new variable."""
        it = self.fresh("m")
        if cls is self.message:  # exactly its class, so that it can be told by its type
            self.line(f"{it} = new({self.constant('Message', cls)})")
        else:
            self.line(f"{it} = {self.constant('blank', blank_maker(cls))}()")
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
            self.after.append(f"{target} = known_uuids[{raw}]")
        else:
            self.run.append((target, FIXED[kind]))

    def flush(self, hold: int = 0) -> None:
        """Read the pending run of fixed-size values; leave p so many bytes before its end."""
        if not self.run:
            return
        codes = "".join(code for _, code in self.run)
        if codes == "B":
            self.line(f"{self.run[0][0]} = b[p]")
        else:
            unpack = f"unpack_{codes.replace('?', 'o')}"
            self.names[unpack] = struct.Struct(">" + codes).unpack_from
            self.line(f"{', '.join(target for target, _ in self.run)}, = {unpack}(b, p)")
        if size := struct.calcsize(">" + codes) - hold:
            self.line(f"p += {size}")
        for text in self.after:
            self.line(text)
        self.run.clear()
        self.after.clear()
        self.proven = True

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
        nullable, name = self.version in field.nullable, repr(field.name)
        if field.kind == "array":
            self.array_length()
        else:
            self.length(field.kind)
        self.line("if n:" if self.flexible else "if n >= 0:")
        self.depth += 1
        if field.kind == "array":
            self.array(field, target)
        else:
            self.content(field.kind, target)
        self.depth -= 1
        if not self.flexible:
            self.line(f"elif n < -1: raise bad_length({name}, n)")
        self.line("else:" if nullable else f"else: raise null({name})")
        if nullable:
            self.line(f"    {target} = None")
            if self.flexible and field.kind != "array":
                self.line("    p += 1")

    def array_length(self) -> None:
        """An array's length into n; a compact one is one more than the length, zero for null."""
        self.run.append(("n", "B" if self.flexible else "i"))
        self.flush()
        if self.flexible:
            self.line("if n > 127: n, p = read_uvarint(b, p - 1)")

    def length(self, kind: str) -> None:
        """A string's or byte string's length into n.

        A compact one leaves p on its last byte, for being one more than the length it then leads
        straight to the end of the content.
        """
        if self.flexible:
            reader = "read_string_length" if kind == "string" else "read_length"
            self.run.append(("n", "B"))
            self.flush(hold=1)
            self.line(f"if n > 127: n, p = {reader}(b, p)")
        else:
            self.run.append(("n", "h" if kind == "string" else "i"))
            self.flush()

    def content(self, kind: str, target: str) -> None:
        """What the length n announced, to the target."""
        begin = "p + 1" if self.flexible else "p"
        of_bytes, of_views = {
            "string": ("b[{}:q].decode()", "b[{}:q].tobytes().decode()"),
            "binary": ("bytes(b[{}:q])", "b[{}:q].tobytes()"),
            "records": ("view[{}:q]", "view[{}:q]"),
        }[kind]
        self.line("q = p + n")
        self.line(f"{target} = {(of_views if self.of_views else of_bytes).format(begin)}")
        self.line("p = q")
        self.proven = False

    def array(self, field: Field, target: str) -> None:
        if field.element in FIXED:
            self.fixed_array(field, target)
            return
        items = self.fresh("items")
        self.line(f"{target} = {items} = []")
        self.line("for _ in spans[n]:")
        self.depth += 1
        if field.element == "string":
            item = "s"
            self.length("string")
            missing = "not n" if self.flexible else "n < 0"
            self.line(f"if {missing}: raise null({field.name!r})")
            self.content("string", item)
        else:
            item = self.struct(getattr(self.message, field.element))
        self.flush()
        self.line(f"{items}.append({item})")
        self.depth -= 1

    def fixed_array(self, field: Field, target: str) -> None:
        """All elements in one call; struct refuses more of them than there are bytes."""
        code = FIXED[field.element]
        size = struct.calcsize(">" + code)
        if field.element == "uuid":
            raise TypeError("arrays of UUIDs appear in no message that we have")
        if self.flexible:
            self.line("n -= 1")
        if self.counted:
            self.line("spans.take(n)")
        short = self.constant("unpackers", primitives.array_unpackers(code))
        self.line(f"if n < {primitives.SHORT_ARRAY}: {target} = [*{short}[n](b, p)]")
        self.line(f"else: {target} = [*unpack_from('>%d{code}' % n, b, p)]")
        self.line(f"p += n * {size}" if size > 1 else "p += n")

    def tags(self, known: list[tuple[Field, str]]) -> None:
        """The tag section that ends every flexible struct. Most are one zero byte."""
        if not known and not self.run:
            self.line("if b[p]: p = skip_tags(b, p)")
            self.line("else: p += 1")
            self.proven = True
            return
        self.run.append(("n", "B"))
        self.flush()
        if not known:
            self.line("if n: p = skip_tags(b, p - 1)")
            return
        self.line("if n:")
        self.depth += 1
        self.line("if n > 127: n, p = read_uvarint(b, p - 1)")
        if self.counted:
            self.line("spans.take(n)")
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
        self.depth -= 1
        self.line("if p > len(b): raise truncated()")
        self.depth -= 1
        self.proven = True
