"""SCRAM on the broker's side (RFC 5802, 7677), as Kafka's ScramSaslServer: no SASLprep.

What is kept of a password is its `ScramCredential`, with which nobody can log in. A user that there
is not gets a made-up salt and fails at the end, like one with a wrong password: names are not told.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from semel.core.access.sasl import Refused


class ScramMechanism(Enum):
    """Kafka's, by the number it has in requests."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def kafka_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @classmethod
    def named(cls, name: str) -> ScramMechanism:
        return cls[name.replace("-", "_")]


@dataclass(frozen=True, slots=True)
class ScramCredential:
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def credential_of(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """What is kept of a password that was salted already."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    return ScramCredential(
        iterations,
        salt,
        hashlib.new(mechanism.digest, client_key).digest(),
        hmac.digest(salted_password, b"Server Key", mechanism.digest),
    )


def decoy(mechanism: ScramMechanism, user: str, secret: bytes, iterations: int) -> ScramCredential:
    """For a user that there is not: the same one for a name, and no password opens it."""
    seed = hmac.digest(secret, f"{mechanism.kafka_name}\0{user}".encode(), "sha512")
    return credential_of(mechanism, seed[:32], seed[32:56], iterations)


Find = Callable[[str], ScramCredential | None]

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<acting>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*))",
    re.DOTALL,
)
_FINAL = re.compile(
    r"(?P<unproved>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>[^,]+)(?:,[A-Za-z]+=[^,]+)*?)"
    r",p=(?P<proof>[A-Za-z0-9/+=]+)"
)


class ScramServer:
    """One exchange: the client's first message, ours, its proof, ours."""

    def __init__(
        self, mechanism: ScramMechanism, nonce: str, find: Find, invent: Callable[[str], object]
    ) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self._mechanism = mechanism
        self._nonce = nonce
        self._find = find
        self._invent = invent
        self._name = ""
        self._is_known = False
        self._credential: ScramCredential | None = None
        self._first = self._binding = ""

    def answer(self, message: bytes) -> bytes:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise Refused from None
        return self._challenge(text) if self._credential is None else self._verify(text)

    def _challenge(self, text: str) -> bytes:
        first = _FIRST.fullmatch(text)
        if first is None or "tokenauth=true" in first["extensions"]:  # no delegation tokens here
            raise Refused
        self._name = _unescaped(first["user"])
        if first["acting"] is not None and _unescaped(first["acting"]) != self._name:
            raise Refused(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        found = self._find(self._name)
        self._is_known = found is not None
        credential = found if found is not None else self._invent(self._name)
        assert isinstance(credential, ScramCredential)
        self._credential = credential
        self._nonce = first["nonce"] + self._nonce
        self._binding = base64.b64encode(first["gs2"].encode()).decode()
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._first = f"{first['bare']},{answer}"
        return answer.encode()

    def _verify(self, text: str) -> bytes:
        final = _FINAL.fullmatch(text)
        credential = self._credential
        assert credential is not None
        if final is None or final["nonce"] != self._nonce or final["binding"] != self._binding:
            raise Refused
        message = f"{self._first},{final['unproved']}".encode()
        digest = self._mechanism.digest
        signature = hmac.digest(credential.stored_key, message, digest)
        try:
            proof = base64.b64decode(final["proof"], validate=True)
        except binascii.Error:
            raise Refused from None
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        matches = hmac.compare_digest(
            hashlib.new(digest, client_key).digest(), credential.stored_key
        )
        if not (matches and len(proof) == len(signature) and self._is_known):
            raise Refused
        self.user = self._name
        signed = hmac.digest(credential.server_key, message, digest)
        return b"v=" + base64.b64encode(signed)


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
