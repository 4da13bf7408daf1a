"""Tokens of OAUTHBEARER: the keys that sign them (JWKS, from a file or a web server), and whether
a token was signed by one of them.

Keys are read again when they are old, or when a token names one that is not known; never more often
than `sasl.oauthbearer.jwks.endpoint.retry.backoff.ms`, whatever clients send. It is done in a
thread: only who authenticates waits for it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from semel.broker.settings.definitions import BadSetting
from semel.core.access.sasl import Refused
from semel.core.access.tokens import (
    ALGORITHMS,
    INVALID,
    BearerServer,
    Believed,
    TokenRules,
    read_message,
)

if TYPE_CHECKING:
    from semel.broker.settings.settings import ListenerSettings

log = logging.getLogger("semel.sasl")

URL = "sasl.oauthbearer.jwks.endpoint.url"
LARGEST_KEYS = 1 << 20
READ_SECONDS = 10.0


class TokenVerifier:
    def __init__(self, settings: ListenerSettings, now_ms: Callable[[], int]) -> None:
        self._jwt = _library()
        self._url = settings[URL]
        if not self._url or not re.match(r"(file|https?)://", self._url):
            raise BadSetting(
                f"Invalid value {self._url} for configuration {URL}: OAUTHBEARER needs the public "
                "keys that sign tokens, as https://… or file:///…"
            )
        self._rules = TokenRules(
            settings["sasl.oauthbearer.expected.issuer"],
            settings["sasl.oauthbearer.expected.audience"],
            settings["sasl.oauthbearer.clock.skew.seconds"],
            settings["sasl.oauthbearer.sub.claim.name"],
            settings["sasl.oauthbearer.scope.claim.name"],
        )
        self._refresh_ms = settings["sasl.oauthbearer.jwks.endpoint.refresh.ms"]
        self._pause_ms = settings["sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"]
        self._now_ms = now_ms
        #: By id: the key, and the algorithms that it is for.
        self._keys: dict[str, tuple[Any, list[str]]] = {}
        self._read_at_ms: int | None = None
        self._reading: asyncio.Task[None] | None = None
        #: How often the keys were asked for.
        self.readings = 0

    def begin(self) -> BearerServer:
        return BearerServer(self.judge)

    async def prepare(self, message: bytes) -> None:
        """Have the key at hand that the message's token names, if there is such a key."""
        try:
            key_id = self._key_id(read_message(message).token)
        except Refused:
            return
        age_ms = None if self._read_at_ms is None else self._now_ms() - self._read_at_ms
        is_old = age_ms is None or age_ms >= self._refresh_ms
        is_missing = key_id not in self._keys and (age_ms is None or age_ms >= self._pause_ms)
        if not is_old and not is_missing:
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read())
        if key_id not in self._keys:
            await asyncio.shield(self._reading)

    def judge(self, token: str) -> Believed:
        """Whom a token names, if it was signed by one of the keys."""
        found = self._keys.get(self._key_id(token))
        if found is None:
            raise Refused(INVALID)
        key, algorithms = found
        # What the claims mean is judged below, with a clock that can be given.
        options = {"verify_signature": True} | dict.fromkeys(_CLAIMS, False)
        try:
            decoded = self._jwt.decode(token, key=key, algorithms=algorithms, options=options)
        except (self._jwt.PyJWTError, TypeError, ValueError):
            raise Refused(INVALID) from None
        return self._rules.judge(decoded, self._now_ms())

    def _key_id(self, token: str) -> str:
        try:
            header = self._jwt.get_unverified_header(token)
        except self._jwt.PyJWTError:
            raise Refused(INVALID) from None
        # Whatever says that it is not signed, or by a secret, is refused before anything else.
        if header.get("alg") not in ALGORITHMS:
            raise Refused(INVALID)
        key_id = header.get("kid", "")
        if not isinstance(key_id, str):
            raise Refused(INVALID)
        return key_id

    async def _read(self) -> None:
        self._read_at_ms = self._now_ms()
        self.readings += 1
        try:
            text = await asyncio.to_thread(_fetch, self._url)
            self._keys = self._parsed(text)
        except (OSError, ValueError) as problem:
            log.error("cannot read the keys of tokens", extra={"url": self._url, "reason": problem})

    def _parsed(self, text: bytes) -> dict[str, tuple[Any, list[str]]]:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
            raise ValueError("not a JSON Web Key Set")
        keys = {}
        for one in found["keys"]:
            try:
                key = self._jwt.PyJWK(one)
            except (self._jwt.PyJWTError, AttributeError, TypeError):
                continue  # of a kind that is not known here: others may be
            said = [one["alg"]] if "alg" in one else _OF_KIND.get(one.get("kty"), ())
            algorithms = [name for name in said if name in ALGORITHMS]
            if one.get("use", "sig") == "sig" and algorithms:
                keys[one.get("kid", "")] = key.key, algorithms
        return keys


#: What a key is for that does not say it.
_OF_KIND = {
    "RSA": [name for name in ALGORITHMS if name.startswith(("RS", "PS"))],
    "EC": [name for name in ALGORITHMS if name.startswith("ES")],
    "OKP": ["EdDSA"],
}
_CLAIMS = ("verify_exp", "verify_nbf", "verify_iat", "verify_aud", "verify_iss", "verify_sub",
           "verify_jti")  # fmt: skip


def _fetch(url: str) -> bytes:
    with urlopen(url, timeout=READ_SECONDS) as answer:
        text: bytes = answer.read(LARGEST_KEYS + 1)
    if len(text) > LARGEST_KEYS:
        raise ValueError(f"more than {LARGEST_KEYS} bytes of keys")
    return text


def _library() -> Any:
    try:
        import cryptography  # noqa: F401  (without it PyJWT knows shared secrets alone)
        import jwt
    except ImportError:
        raise BadSetting(
            "sasl.enabled.mechanisms: OAUTHBEARER needs the extra `oauth`: "
            "pip install 'semel[oauth]'"
        ) from None
    return jwt
