"""Settings of listeners: names, TLS and SASL. Kafka's, and (but where said) its defaults."""

# ruff: noqa: E501  (a table reads best with a row on a line)
from __future__ import annotations

from semel.broker.settings.definitions import (
    PER_BROKER,
    READ_ONLY,
    Allowed,
    Setting,
    SettingType,
    Value,
    any_of,
    at_least,
    one_of,
)

INT, LIST, LONG, PASSWORD, STRING = (
    SettingType.INT,
    SettingType.LIST,
    SettingType.LONG,
    SettingType.PASSWORD,
    SettingType.STRING,
)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PEM = one_of("PEM")


def _setting(
    name: str,
    kind: SettingType,
    default: Value,
    allowed: Allowed | None,
    doc: str,
    update: str = PER_BROKER,
) -> Setting:
    return Setting(name, kind, default, doc, allowed, update, per_listener=True)


# fmt: off
SECURITY_SETTINGS = [
    Setting("listener.security.protocol.map", LIST, tuple(f"{one}:{one}" for one in PROTOCOLS), "Which protocol each listener speaks, as NAME:PROTOCOL; a listener named like a protocol needs no entry."),
    Setting("connection.authentication.timeout.ms", LONG, 15_000, "How long a new connection may take for its TLS handshake and for SASL before it is closed. (Kafka has no such limit but `connections.max.idle.ms`.)", at_least(1)),
    Setting("connection.failed.authentication.delay.ms", INT, 100, "How long the answer to a failed authentication is held back: guessing takes time.", at_least(0)),
    _setting("connections.max.reauth.ms", LONG, 0, at_least(0), "A client authenticates anew within this time or its connection is closed (KIP-368); 0 asks for it only where a token ends.", READ_ONLY),
    _setting("sasl.enabled.mechanisms", LIST, ("SCRAM-SHA-256", "SCRAM-SHA-512"), any_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"), "How clients of SASL listeners may say who they are. (Kafka: GSSAPI, which is not here)"),
    _setting("sasl.jaas.config", PASSWORD, None, None, "For PLAIN, as `listener.name.NAME.plain.sasl.jaas.config`: users and passwords in the form `… required user_NAME=\"PASSWORD\";`."),
    _setting("sasl.oauthbearer.clock.skew.seconds", INT, 30, at_least(0), "How far the clock of who issues tokens may be off.", READ_ONLY),
    _setting("sasl.oauthbearer.expected.audience", LIST, (), None, "For OAUTHBEARER: a token must be for one of these; empty takes any.", READ_ONLY),
    _setting("sasl.oauthbearer.expected.issuer", STRING, None, None, "For OAUTHBEARER: who must have issued a token; unset takes any.", READ_ONLY),
    _setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, at_least(1), "How old the keys may be before they are read again.", READ_ONLY),
    _setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 10_000, at_least(1), "The shortest time between two readings of the keys, also when tokens name keys that nobody knows. (Kafka: 100)", READ_ONLY),
    _setting("sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, "For OAUTHBEARER: where the public keys are that sign tokens (JWKS), as https://… or file:///….", READ_ONLY),
    _setting("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, "The claim of a token that lists its scopes.", READ_ONLY),
    _setting("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, "The claim of a token that names the user.", READ_ONLY),
    _setting("sasl.server.max.receive.size", INT, 524_288, at_least(1), "The largest request of a client that has not said who it is.", READ_ONLY),
    _setting("ssl.cipher.suites", LIST, (), None, "The ciphers allowed, by the names that Java or OpenSSL has for them; empty is the library's choice. Those of TLS 1.3 are always allowed."),
    _setting("ssl.client.auth", STRING, "none", one_of("required", "requested", "none"), "Whether clients must, may or need not show a certificate. For SASL_SSL only where it is set for that listener."),
    _setting("ssl.crl.location", STRING, None, None, "A PEM file of certificates that were revoked (CRL): clients that show one of them are refused. (Not in Kafka, which leaves it to Java.)"),
    _setting("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), any_of("TLSv1.2", "TLSv1.3"), "The versions of TLS allowed."),
    _setting("ssl.key.password", PASSWORD, None, None, "The password of the key."),
    _setting("ssl.keystore.certificate.chain", PASSWORD, None, None, "The broker's certificate and those above it, as PEM text."),
    _setting("ssl.keystore.key", PASSWORD, None, None, "The key of the broker's certificate, as PEM text."),
    _setting("ssl.keystore.location", STRING, None, None, "A PEM file with the broker's key, its certificate and those above it. Read again when it changes."),
    _setting("ssl.keystore.type", STRING, "PEM", PEM, "Only PEM. (Kafka: JKS)"),
    _setting("ssl.principal.mapping.rules", STRING, "DEFAULT", None, "How the subject of a client's certificate becomes a user's name: `RULE:pattern/replacement/` with L or U at its end, and DEFAULT; the first that matches counts.", READ_ONLY),
    _setting("ssl.truststore.certificates", PASSWORD, None, None, "Whom clients' certificates must be signed by, as PEM text."),
    _setting("ssl.truststore.location", STRING, None, None, "A PEM file of those whom clients' certificates must be signed by. Read again when it changes."),
    _setting("ssl.truststore.type", STRING, "PEM", PEM, "Only PEM. (Kafka: JKS)"),
]
# fmt: on
