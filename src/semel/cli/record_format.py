r"""Records as lines: by a format of the user's, or as JSON.

A format is text with `%v` and the like for parts of the record, and `\n` and the like for
characters that are hard to type. Keys, values and headers are written as the bytes they are.

JSON of a record: text (UTF-8) is a string, any other bytes are `{"base64": "…"}`, what is absent is
`null`. Headers are a list in their order, because a name may occur more than once.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
from collections.abc import Callable
from typing import Any

from semel.cli.printing import moment
from semel.client import ConsumerRecord

Part = Callable[[ConsumerRecord], bytes]

PARTS: dict[str, tuple[str, Part]] = {
    "%t": ("topic", lambda record: record.topic.encode()),
    "%p": ("partition", lambda record: b"%d" % record.partition),
    "%o": ("offset", lambda record: b"%d" % record.offset),
    "%T": ("time", lambda record: _time(record.timestamp)),
    "%k": ("key", lambda record: record.key or b""),
    "%v": ("value", lambda record: record.value or b""),
    "%h": ("headers", lambda record: b",".join(_header(*one) for one in record.headers)),
}
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "e": b"\x1b", "\\": b"\\"}
_KNOWN_ESCAPES = r"\n \t \r \0 \e \\ \x41 \c"
_ENDINGS = (r"\n", r"\r", r"\0", r"\c")
_TOKEN = re.compile(r"%.?|\\x[0-9a-fA-F]{2}|\\.?|[^%\\]+", re.DOTALL)
HELP = (
    "with " + ", ".join(f"{sign} {what}" for sign, (what, _) in PARTS.items()) + r", %% percent "
    r"sign; \n, \t, \r, \0, \e, \\, \x41 as in C. A line end follows, unless the format ends in "
    r"\n, \r or \0, or in \c, which stands for nothing"
)


class Format:
    """Turns records into bytes."""

    def __init__(self, text: str) -> None:
        self.text = text
        tokens = _TOKEN.findall(text)
        self._parts = [self._part(token) for token in tokens]
        if not tokens or tokens[-1] not in _ENDINGS:
            self._parts.append(b"\n")

    def __call__(self, record: ConsumerRecord) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(record) for part in self._parts)

    def __str__(self) -> str:
        return self.text

    def _part(self, token: str) -> bytes | Part:
        if token in PARTS:
            return PARTS[token][1]
        if token == "%%":
            return b"%"
        if token == r"\c":
            return b""
        if token.startswith(r"\x") and len(token) == 4:
            return bytes.fromhex(token[2:])
        if token.startswith("\\") and token[1:] in _ESCAPES:
            return _ESCAPES[token[1:]]
        if token[0] in "%\\":
            raise argparse.ArgumentTypeError(
                f"{token} means nothing: there are {' '.join(PARTS)} %% and {_KNOWN_ESCAPES}"
            )
        return token.encode()


def as_json(record: ConsumerRecord) -> bytes:
    facts = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
        "headers": [{"key": key, "value": json_bytes(value)} for key, value in record.headers],
    }
    return json.dumps(facts).encode() + b"\n"


def json_bytes(data: bytes | None) -> Any:
    """A string where it is text, else an object that says base64."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _time(timestamp_ms: int) -> bytes:
    return moment(timestamp_ms).encode() if timestamp_ms >= 0 else b""


def _header(key: str, value: bytes | None) -> bytes:
    return key.encode() + b"=" + (value or b"")
