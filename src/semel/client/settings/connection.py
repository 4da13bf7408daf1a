"""How to reach a cluster: settings that the clients, the command line and Spark all have."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_type_hints

from semel.client.settings.spellings import own_names
from semel.client.settings.values import typed
from semel.errors import UsageError
from semel.net.client_connection import Endpoint
from semel.net.client_sasl import Credentials, Token

Servers = str | Sequence[str]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """Where the brokers are and how to speak with them. The text below each setting is its
    documentation, for this file's reader, for editors and for the pages made from it."""

    bootstrap_servers: str | tuple[str, ...] = "localhost:9092"
    """Brokers to ask first: `host:port`, several separated by commas or in a list."""
    client_id: str = "semel"
    """The name under which brokers log and count this client."""
    request_timeout_ms: int = 30_000
    """How long one request may go unanswered before its connection is given up."""
    socket_connection_setup_timeout_ms: int = 10_000
    """How long opening one connection may take."""
    security_protocol: SecurityProtocol = "PLAINTEXT"
    """Whether connections are encrypted (SSL) and authenticated by SASL."""
    ssl_context: ssl.SSLContext | None = None
    """A context made by hand, in place of all other `ssl_` settings."""
    ssl_cafile: str | None = None
    """A PEM file of the authorities that brokers' certificates are checked against; without it the
    system's."""
    ssl_certfile: str | None = None
    """A PEM file with this client's own certificate, and with its key unless `ssl_keyfile` has it.
    """
    ssl_keyfile: str | None = field(default=None, repr=False)
    """A PEM file with the key of this client's certificate."""
    ssl_password: str | None = field(default=None, repr=False)
    """The password of that key."""
    ssl_check_hostname: bool = True
    """Whether a broker's certificate must be for the host that was connected to."""
    sasl_mechanism: SaslMechanism = "PLAIN"
    """How this client proves who it is, where `security_protocol` says SASL."""
    sasl_username: str = ""
    """The user's name, for PLAIN and SCRAM."""
    sasl_password: str = field(default="", repr=False)
    """The user's password, for PLAIN and SCRAM."""
    sasl_oauth_token: Token = field(default="", repr=False)
    """For OAUTHBEARER: the token, or a function (it may be a coroutine's) that gets a fresh one."""

    @classmethod
    def of(
        cls,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Self:
        """From whatever a user brings: an address or a dict, a dict more, keywords; later ones win.

        Names are checked before anything else: a mistyped setting must not be silently ignored.
        """
        known = [each.name for each in fields(cls)]
        values: dict[str, Any] = {}
        if isinstance(bootstrap_servers, Mapping):
            values |= own_names(bootstrap_servers, known)
        values |= own_names(settings or {}, known)
        values |= own_names({n: value for n, value in given.items() if value is not None}, known)
        if bootstrap_servers is not None and not isinstance(bootstrap_servers, Mapping):
            values["bootstrap_servers"] = bootstrap_servers
        kinds = get_type_hints(cls)
        try:
            made = cls(**{name: typed(name, value, kinds[name]) for name, value in values.items()})
            made.check(frozenset(values))
        except ValueError as error:
            raise UsageError(str(error)) from None
        return made

    def check(self, named: frozenset[str]) -> None:
        """Whether all settings together make sense; `named` are those that the user has set."""
        self.endpoints()
        if not self.security_protocol.endswith("SSL"):
            self._refuse_unused("ssl_", "SSL or SASL_SSL")
        if not self.security_protocol.startswith("SASL"):
            self._refuse_unused("sasl_", "SASL_SSL or SASL_PLAINTEXT")
        elif self.sasl_mechanism == "OAUTHBEARER" and not self.sasl_oauth_token:
            raise ValueError("sasl_mechanism OAUTHBEARER needs a sasl_oauth_token")
        elif self.sasl_mechanism != "OAUTHBEARER" and not self.sasl_username:
            raise ValueError(f"sasl_mechanism {self.sasl_mechanism} needs a sasl_username")
        if (self.ssl_keyfile or self.ssl_password) and not self.ssl_certfile:
            raise ValueError("ssl_keyfile and ssl_password need an ssl_certfile: whose are they?")

    def _refuse_unused(self, prefix: str, protocols: str) -> None:
        """What would be left out is refused: a password could travel in the clear."""
        changed = [each.name for each in fields(self) if getattr(self, each.name) != each.default]
        if unused := [name for name in changed if name.startswith(prefix)]:
            raise ValueError(
                f"{', '.join(unused)}: not used while security_protocol is "
                f"{self.security_protocol}; set it to {protocols}"
            )

    def endpoints(self) -> list[Endpoint]:
        """The bootstrap servers as addresses."""
        given = self.bootstrap_servers
        servers = given.split(",") if isinstance(given, str) else given
        found = [_endpoint(server.strip()) for server in servers if server.strip()]
        if not found:
            raise ValueError("bootstrap_servers is empty: name a broker as host:port")
        return found

    def tls(self) -> ssl.SSLContext | None:
        """The context for connections, if they are encrypted. Files are read here."""
        if not self.security_protocol.endswith("SSL"):
            return None
        if self.ssl_context is not None:
            return self.ssl_context
        context = _trusting(self.ssl_cafile)
        context.check_hostname = self.ssl_check_hostname
        if self.ssl_certfile:
            try:
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, self.ssl_password)
            except OSError as error:
                names = " and ".join(filter(None, (self.ssl_certfile, self.ssl_keyfile)))
                raise UsageError(f"ssl_certfile: {names} cannot be used: {_why(error)}") from None
        return context

    def credentials(self) -> Credentials | None:
        """Who this client is, if brokers shall know."""
        if not self.security_protocol.startswith("SASL"):
            return None
        return Credentials(
            self.sasl_mechanism, self.sasl_username, self.sasl_password, self.sasl_oauth_token
        )


def _trusting(cafile: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=cafile)
    except OSError as error:
        raise UsageError(f"ssl_cafile {cafile} cannot be used: {_why(error)}") from None


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (
            f"{error.reason or error}. It must be a PEM file; Java's key stores (JKS, PKCS12) are "
            "exported by `keytool -exportcert -rfc` or `openssl pkcs12`"
        )
    return error.strerror or str(error)


def _endpoint(server: str) -> Endpoint:
    host, colon, port = server.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"bootstrap server {server!r} should be host:port")
    return Endpoint(host.strip("[]"), int(port))
