"""Certificates for tests: an authority, and what it signs, as PEM files in a directory."""

import datetime
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_SHORT = {"CN": NameOID.COMMON_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
          "O": NameOID.ORGANIZATION_NAME, "C": NameOID.COUNTRY_NAME}  # fmt: skip
_DAY = datetime.timedelta(days=1)
_SIGNS = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
    encipher_only=False, decipher_only=False,
)  # fmt: skip


def _name(subject: str) -> x509.Name:
    """`CN=alice,OU=people`, as it is printed: the last part stands first in the certificate."""
    parts = [part.split("=") for part in reversed(subject.split(","))]
    return x509.Name([x509.NameAttribute(_SHORT[key], value) for key, value in parts])


class Authority:
    """Signs certificates, and says which of them it has revoked."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self.directory = directory
        self._name = _name(f"CN={name}")
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign(self._name, self._key, is_authority=True)
        self.file = directory / f"{name}.pem"
        self.file.write_bytes(_pem(self._certificate))

    def issue(
        self,
        subject: str,
        *,
        file: str | None = None,
        days: int = 30,
        password: str | None = None,
        key: Any = None,
    ) -> Path:
        """A PEM file of a key and its certificate; with negative days it has expired."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(subject), key, days=days)
        secret: Any = serialization.NoEncryption()
        if password is not None:
            secret = serialization.BestAvailableEncryption(password.encode())
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret
        ) + _pem(certificate)
        path = self.directory / (file or f"{subject.replace(',', '_')}.pem")
        path.write_bytes(text)
        path.chmod(0o600)
        return path

    def revoke(self, *issued: Path) -> Path:
        """A file of revoked certificates that has these."""
        now = datetime.datetime.now(datetime.UTC)
        revoked = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        revoked = revoked.last_update(now - _DAY).next_update(now + 30 * _DAY)
        for path in issued:
            certificate = x509.load_pem_x509_certificate(path.read_bytes())
            one = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
            revoked = revoked.add_revoked_certificate(one.revocation_date(now - _DAY).build())
        path = self.directory / "revoked.pem"
        path.write_bytes(
            revoked.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        return path

    def _sign(
        self, subject: x509.Name, key: Any, days: int = 365, is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 60 * _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(_localhost(), critical=False)
            # Python 3.13 refuses what does not say which key signed it, and which key it is.
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if is_authority:
            builder = builder.add_extension(_SIGNS, critical=True)
        return builder.sign(self._key, hashes.SHA256())


def _localhost() -> x509.SubjectAlternativeName:
    names: Iterable[x509.GeneralName] = (
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    )
    return x509.SubjectAlternativeName(names)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
