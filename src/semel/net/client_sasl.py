"""The client's side of SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER.

`Credentials` are what a user sets; `begin` starts an exchange, which answers the broker's messages
until it returns None. A ValueError says in words why the broker is not believed.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Protocol

Token = str | Callable[[], str | Awaitable[str]]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Exchange(Protocol):
    def first(self) -> bytes: ...

    def next(self, challenge: bytes) -> bytes | None: ...


@dataclass(frozen=True)
class Credentials:
    """A mechanism, and a user with a password, or a bearer token (or a function that gets one)."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: Token = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(
                f"unknown SASL mechanism {self.mechanism!r}: use one of {', '.join(MECHANISMS)}"
            )

    async def begin(self) -> Exchange:
        if self.mechanism == "OAUTHBEARER":
            found = self.token() if callable(self.token) else self.token
            token = await found if isawaitable(found) else found
            if not isinstance(token, str):
                raise TypeError(f"a token must be str, got {type(token).__name__}")
            return Bearer(token)
        return self.exchange()

    def exchange(self) -> Exchange:
        """The same for who has a password, which needs no waiting."""
        if self.mechanism == "PLAIN":
            return Plain(self.username, self.password)
        digest = "sha256" if self.mechanism == "SCRAM-SHA-256" else "sha512"
        return Scram(digest, self.username, self.password)


class Plain:
    def __init__(self, username: str, password: str) -> None:
        self._message = b"\0" + username.encode() + b"\0" + password.encode()

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        return None


class Bearer:
    """RFC 7628, with which the broker answers nothing on success and a JSON text on failure."""

    def __init__(self, token: str) -> None:
        self._token = token

    def first(self) -> bytes:
        return b"n,,\x01auth=Bearer " + self._token.encode() + b"\x01\x01"

    def next(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise ValueError(f"the token was refused: {challenge.decode(errors='replace')}")
        return None


class Scram:
    """RFC 5802: proves knowledge of the password to the broker, and the broker's to us."""

    def __init__(self, digest: str, username: str, password: str, nonce: str | None = None) -> None:
        self._digest = digest
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        if self._server_signature is None:
            return self._prove(challenge.decode())
        fields = _fields(challenge.decode())
        if "e" in fields:
            raise ValueError(f"SCRAM failed: {fields['e']}")
        if not hmac.compare_digest(base64.b64decode(fields.get("v", "")), self._server_signature):
            raise ValueError("the broker does not know the password: is it the right one?")
        return None

    def _prove(self, server_first: str) -> bytes:
        fields = _fields(server_first)
        nonce, iterations = fields.get("r", ""), int(fields.get("i", "0"))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ValueError("the broker answered another exchange")
        # RFC 5802 asks for 4096 at least; the upper bound keeps a false broker from stalling us.
        if not 4096 <= iterations <= 10_000_000:
            raise ValueError(f"the broker asks for {iterations} iterations")
        salt = base64.b64decode(fields.get("s", ""))
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._digest, client_key).digest()
        without_proof = f"c=biws,r={nonce}"
        message = ",".join((self._first_bare, server_first, without_proof)).encode()
        signature = self._hmac(stored_key, message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._digest)


def _fields(message: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.split(",") if "=" in part)
