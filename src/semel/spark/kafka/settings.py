"""How a driver and its tasks reach the brokers: the clients' own list of settings, and defaults."""

from dataclasses import dataclass

from semel.client.settings.connection import ConnectionSettings


@dataclass(frozen=True, kw_only=True)
class SparkSettings(ConnectionSettings):
    """What the source, the sink and pipelines take as `settings`, or as options with `kafka.`.

    It is a value that travels to the tasks. Secrets are never printed.
    """

    client_id: str = "semel-spark"
    """The name under which brokers log and count this application's connections."""
    # Longer than the 30 s after which a broker itself gives up waiting for replicas.
    request_timeout_ms: int = 40_000
    """How long one request may go unanswered before its connection is given up."""

    def check(self, named: frozenset[str]) -> None:
        if self.ssl_context is not None:
            raise ValueError(
                "ssl_context cannot travel to Spark's tasks: name PEM files by ssl_cafile,"
                " ssl_certfile and ssl_keyfile"
            )
        if self.security_protocol.startswith("SASL") and self.sasl_mechanism == "OAUTHBEARER":
            raise ValueError(
                "sasl_mechanism OAUTHBEARER: a token would be old before a long query ends; use"
                " one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
            )
        super().check(named)
