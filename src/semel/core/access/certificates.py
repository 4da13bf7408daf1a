"""Of a certificate what Python's `ssl` does not tell of one's own: until when it is good."""

from __future__ import annotations

import calendar
import re

_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18
_MOMENT = re.compile(rb"(\d{2,4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z")


class NotACertificate(ValueError):
    """The bytes are not an X.509 certificate."""


def not_after_ms(der: bytes) -> int:
    """When it expires (RFC 5280: the second moment of `validity`)."""
    try:
        _, certificate, _ = _field(der, 0)
        _, facts, _ = _field(certificate, 0)
        tag, _, position = _field(facts, 0)
        for _ in range(3 if tag == _VERSION else 2):  # serial number, algorithm, issuer
            _, _, position = _field(facts, position)
        _, validity, _ = _field(facts, position)
        _, _, position = _field(validity, 0)
        tag, text, _ = _field(validity, position)
        return _moment_ms(tag, text)
    except (IndexError, ValueError) as problem:
        raise NotACertificate("not a certificate") from problem


def _field(data: bytes, position: int) -> tuple[int, bytes, int]:
    """Tag and content of the DER field at a position, and where the next one begins."""
    tag, size = data[position], data[position + 1]
    position += 2
    if size & 0x80:
        width = size & 0x7F
        size = int.from_bytes(data[position : position + width], "big")
        position += width
    if position + size > len(data):
        raise ValueError("the bytes end too early")
    return tag, data[position : position + size], position + size


def _moment_ms(tag: int, text: bytes) -> int:
    found = _MOMENT.fullmatch(text)
    if found is None or tag not in (_UTC_TIME, _GENERALIZED_TIME):
        raise ValueError("not a time")
    year, *rest = (int(part) for part in found.groups())
    if tag == _UTC_TIME:  # two digits: from 1950 to 2049
        year += 1900 if year >= 50 else 2000
    return calendar.timegm((year, *rest)) * 1000
