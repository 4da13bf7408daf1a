"""The SASL mechanisms of a listener: which are enabled, and what each compares with."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from semel.broker.settings.definitions import BadSetting
from semel.core.access.sasl import OAUTHBEARER, PLAIN, PlainServer, ServerExchange
from semel.core.access.scram import ScramMechanism, ScramServer, decoy

if TYPE_CHECKING:
    from semel.broker.access.tokens import TokenVerifier
    from semel.broker.catalog.credentials import ScramCredentials
    from semel.broker.settings.settings import ListenerSettings

FEWEST_ITERATIONS = 4096
_OPTION = re.compile(r'\s([\w.\-@]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([^\s;"\']+))')

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Mechanisms:
    def __init__(
        self,
        settings: ListenerSettings,
        credentials: ScramCredentials,
        spawn: Spawn,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._now_ms = now_ms
        self._secret = os.urandom(32)
        self._tokens: TokenVerifier | None = None
        self.spawn = spawn

    def load(self) -> None:
        """Read what the settings say; raises BadSetting where something is missing."""
        enabled = self._settings["sasl.enabled.mechanisms"]
        if not enabled:
            raise BadSetting("Invalid value for sasl.enabled.mechanisms: name at least one")
        passwords = {}
        if PLAIN in enabled:
            passwords = plain_users(self._settings.of_mechanism(PLAIN)["sasl.jaas.config"])
        if OAUTHBEARER in enabled and self._tokens is None:
            from semel.broker.access.tokens import TokenVerifier

            self._tokens = TokenVerifier(self._settings.of_mechanism(OAUTHBEARER), self._now_ms)
        self.enabled: tuple[str, ...] = enabled
        self._passwords: Mapping[str, str] = passwords

    def begin(self, mechanism: str) -> ServerExchange:
        if mechanism == PLAIN:
            return PlainServer(self._passwords)
        if mechanism == OAUTHBEARER:
            assert self._tokens is not None
            return self._tokens.begin()
        scram = ScramMechanism.named(mechanism)
        credentials = self._credentials
        iterations = credentials.usual_iterations(scram)
        return ScramServer(
            scram,
            secrets.token_urlsafe(18),
            lambda user: credentials.get((scram, user)),
            lambda user: decoy(scram, user, self._secret, iterations),
        )

    async def prepare(self, mechanism: str, token: bytes) -> None:
        """Get what is needed to judge a message, where that takes time."""
        if mechanism == OAUTHBEARER and self._tokens is not None:
            await self._tokens.prepare(token)


def plain_users(jaas: str | None) -> dict[str, str]:
    """The users of Kafka's PlainLoginModule: `… required user_alice="her password";`."""
    if jaas is None:
        raise BadSetting(
            "Invalid value for sasl.jaas.config: PLAIN needs users: set "
            "listener.name.NAME.plain.sasl.jaas.config to org.apache.kafka.common.security.plain."
            'PlainLoginModule required user_NAME="PASSWORD";'
        )
    users = {}
    for name, quoted, single, bare in _OPTION.findall(jaas):
        if name.startswith("user_"):
            value = re.sub(r"\\(.)", r"\1", quoted) or single or bare
            users[name.removeprefix("user_")] = value
    return users
