"""Log lines for people and machines: logfmt (`level=warning part=net msg="…" peer=…`) or JSON.

What is passed as `extra=` becomes fields of the line; an exception follows as a traceback in one
field.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("logfmt", "json")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    def __init__(self, as_json: bool = False) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "part": record.name.removeprefix("semel."),
            "msg": record.getMessage(),
        }
        fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            fields["problem"] = self.formatException(record.exc_info)
        if self._as_json:
            return json.dumps(fields, default=str)
        return " ".join(f"{key}={_quoted(value)}" for key, value in fields.items())


def write_lines(
    level: str = "warning", line_format: str = "logfmt", to: TextIO = sys.stderr
) -> None:
    """Send everything this package logs, from `level` on, to a stream."""
    handler = logging.StreamHandler(to)
    handler.setFormatter(LineFormatter(as_json=line_format == "json"))
    logger = logging.getLogger("semel")
    logger.setLevel(level.upper())
    logger.addHandler(handler)
    logger.propagate = False


def _timestamp(seconds: float) -> str:
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{milliseconds:03}Z"


def _quoted(value: object) -> str:
    text = str(value)
    if text and not any(character in text for character in ' "=\n'):
        return text
    return json.dumps(text, ensure_ascii=False)
