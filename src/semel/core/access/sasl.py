"""SASL on the broker's side: what an exchange is, and the simplest one (PLAIN, RFC 4616).

An exchange answers the client's messages until it knows a user, or refuses. Kafka's words are used
where its clients show them; what a client may not know (does this user exist?) is in none of them.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Protocol

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
MECHANISMS = PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER


class Refused(Exception):
    """Not let in. `told` is what the client may read of it; None means the usual sentence."""

    def __init__(self, told: str | None = None) -> None:
        super().__init__(told or "invalid credentials")
        self.told = told


class ServerExchange(Protocol):
    """One authentication. `user` is set by the last answer; what was proved may end by itself."""

    user: str | None
    expires_at_ms: int | None

    def answer(self, message: bytes) -> bytes:
        """What to say to the client's message; raises `Refused`."""


class PlainServer:
    """A user and a password in one message, compared with a table (PlainSaslServer)."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self._passwords = passwords

    def answer(self, message: bytes) -> bytes:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise Refused from None
        if len(parts) != 3:
            raise Refused(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
            )
        acting, user, password = parts
        if not user:
            raise Refused("Authentication failed: username not specified")
        if not password:
            raise Refused("Authentication failed: password not specified")
        # A name that there is not takes the same time as one that there is.
        expected = self._passwords.get(user, "")
        matches = hmac.compare_digest(password.encode(), (expected or password[::-1]).encode())
        if not (matches and expected):
            raise Refused("Authentication failed: Invalid username or password")
        if acting not in ("", user):
            raise Refused(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.user = user
        return b""
