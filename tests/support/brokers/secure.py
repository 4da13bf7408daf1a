"""A Semel broker in a process of its own with a listener of each protocol, users and tokens."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from tests.support.brokers.ports import free_port
from tests.support.brokers.process import SemelProcess
from tests.support.certificates import Authority

USER, PASSWORD = "alice", "a secret, of hers"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'


class SecureProcess(SemelProcess):
    """PLAINTEXT, for who adds the users, SSL and SASL_SSL."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(settings)
        self.ports = {name: free_port() for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")}
        self.ports["PLAINTEXT"] = self.port
        self.authority = Authority(directory)
        self.server_pem = self.authority.issue("CN=localhost")
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._keys = directory / "jwks.json"
        public: dict[str, Any] = json.loads(ECAlgorithm.to_jwk(self._key.public_key()))
        self._keys.write_text(json.dumps({"keys": [public | {"kid": "k"}]}))
        self.settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in self.ports.items()),
            "ssl.keystore.location": str(self.server_pem),
            "ssl.truststore.location": str(self.authority.file),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.oauthbearer.jwks.endpoint.url": self._keys.as_uri(),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
            "group.initial.rebalance.delay.ms": "0",
        } | self.settings

    def bootstrap_of(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def token(self, lifetime_s: int = 600) -> str:
        now = int(time.time())
        claims = {"sub": USER, "iat": now, "exp": now + lifetime_s, "scope": "kafka"}
        return jwt.encode(claims, self._key, "ES256", headers={"kid": "k"})
