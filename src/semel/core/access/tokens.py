"""OAUTHBEARER on the broker's side (RFC 7628), and which claims of a token are believed.

That a token's signature is good is found out elsewhere (`broker/access/tokens`). Here: what the
client's message looks like, and when the claims say that it may come in (Kafka's
BrokerJwtValidator).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from semel.core.access.sasl import Refused

_MESSAGE = re.compile(
    r"n,(?:a=(?P<acting>(?:[^=,\0\x01]|=2C|=3D)+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)*)\x01"
)
_BEARER = re.compile(r"(?i:bearer) +([-_.~+/A-Za-z0-9]+=*) *")
#: Signatures by a public key alone: with a shared secret the published keys would sign as well.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
              "EdDSA")  # fmt: skip
INVALID = '{"status":"invalid_token"}'


class Believed(NamedTuple):
    """Who a token says its bearer is, and until when."""

    user: str
    expires_at_ms: int


@dataclass(frozen=True)
class TokenRules:
    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    skew_seconds: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"

    def judge(self, claims: Mapping[str, Any], now_ms: int) -> Believed:
        """Whom the claims name; raises Refused, with words for the log only."""
        now, skew = now_ms / 1000, self.skew_seconds
        expires = _number(claims, "exp", needed=True)
        if now > expires + skew:
            raise Refused(INVALID)
        if _number(claims, "nbf") > now + skew or _number(claims, "iat") > now + skew:
            raise Refused(INVALID)
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise Refused(INVALID)
        if self.audiences and not set(_texts(claims.get("aud"))) & set(self.audiences):
            raise Refused(INVALID)
        user = claims.get(self.subject_claim)
        if not isinstance(user, str) or not user.strip():
            raise Refused(INVALID)
        scope = claims.get(self.scope_claim)
        if scope is not None and not isinstance(scope, str | list):
            raise Refused(INVALID)
        return Believed(user, int(expires * 1000))


def _number(claims: Mapping[str, Any], name: str, needed: bool = False) -> float:
    value = claims.get(name)
    if value is None and not needed:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise Refused(INVALID)
    return value


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]


class BearerMessage(NamedTuple):
    token: str
    acting: str


def read_message(message: bytes) -> BearerMessage:
    """The client's first message: a token, and whom its bearer wants to be."""
    try:
        found = _MESSAGE.fullmatch(message.decode())
    except UnicodeDecodeError:
        raise Refused from None
    if found is None:
        raise Refused
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
    bearer = _BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None:
        raise Refused
    acting = (found["acting"] or "").replace("=2C", ",").replace("=3D", "=")
    return BearerMessage(bearer[1], acting)


class BearerServer:
    """A token, and, where it is refused, a JSON text that the client answers with one byte."""

    def __init__(self, judge: Callable[[str], Believed]) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self._judge = judge
        self._refused: str | None = None

    def answer(self, message: bytes) -> bytes:
        if self._refused is not None:
            raise Refused(self._refused)
        asked = read_message(message)
        try:
            believed = self._judge(asked.token)
        except Refused as refused:
            self._refused = refused.told or INVALID
            return self._refused.encode()
        if asked.acting not in ("", believed.user):
            raise Refused(
                f"Authentication failed: Client requested an authorization id ({asked.acting}) "
                f"that is different from the token's principal name ({believed.user})"
            )
        self.user, self.expires_at_ms = believed
        return b""
