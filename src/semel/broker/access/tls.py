"""TLS of a listener: its key and certificates, whom it trusts, and who a client's certificate says
that it is. New files and new settings count from the next connection on."""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import ListenerSettings
from semel.core.access.certificates import NotACertificate, not_after_ms
from semel.core.access.principals import (
    ANONYMOUS,
    USER,
    BadRule,
    KafkaPrincipal,
    NoRuleApplies,
    PrincipalRules,
    distinguished_name,
)
from semel.core.patterns import InvalidPattern

log = logging.getLogger("semel.tls")

#: Files are looked at for changes no more often than this.
LOOK_SECONDS = 1.0
CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_FILES = ("ssl.keystore.location", "ssl.truststore.location", "ssl.crl.location")
_PEM = re.compile(r"-----BEGIN ([^-]+)-----(.*?)-----END \1-----", re.DOTALL)
_OF_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_")


class ListenerTls:
    """What the TLS connections of one listener share (`semel.net.tls.Shield`)."""

    def __init__(
        self, name: str, settings: ListenerSettings, has_sasl: bool, now: Callable[[], float]
    ) -> None:
        self.name = name
        self._settings = settings
        self._has_sasl = has_sasl
        self._now = now
        self._look_at = 0.0
        self._marks: object = None
        self.expires_at_ms = 0

    def load(self) -> None:
        """Read all of it; raises BadSetting where it cannot be used."""
        self._marks = self._file_marks()
        self._rules = _rules(self._settings["ssl.principal.mapping.rules"])
        self._context, self.expires_at_ms = context_of(self._settings, self._has_sasl)

    def reload(self) -> None:
        """Take over what changed; what cannot be used leaves all as it was."""
        try:
            self.load()
        except BadSetting as problem:
            log.error("kept the old certificate", extra={"listener": self.name, "reason": problem})
        else:
            log.info("loaded a certificate", extra={"listener": self.name})

    # For connections

    def begin(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        if self._now() >= self._look_at:
            self._look_at = self._now() + LOOK_SECONDS
            if self._file_marks() != self._marks:
                self.reload()
        return self._context.wrap_bio(incoming, outgoing, server_side=True)

    def identify(self, tls: ssl.SSLObject) -> KafkaPrincipal:
        certificate = tls.getpeercert()
        if self._has_sasl or not certificate:
            return ANONYMOUS
        try:
            name = self._rules.name_of(distinguished_name(certificate["subject"]))  # type: ignore[arg-type]
        except NoRuleApplies as problem:
            raise ValueError(str(problem)) from None
        return KafkaPrincipal(USER, name)

    def _file_marks(self) -> list[tuple[int, int, int] | None]:
        return [_mark(self._settings[name]) for name in _FILES]


def _mark(location: str | None) -> tuple[int, int, int] | None:
    """What changes when a file does."""
    if not location:
        return None
    try:
        found = os.stat(location)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _rules(text: str) -> PrincipalRules:
    try:
        return PrincipalRules(text)
    except (BadRule, InvalidPattern) as problem:
        raise _bad("ssl.principal.mapping.rules", str(problem)) from None


def context_of(settings: ListenerSettings, has_sasl: bool) -> tuple[ssl.SSLContext, int]:
    """A context as the settings describe it, and when its certificate expires."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # each connection shows anew who it is
    _limit_versions(context, settings["ssl.enabled.protocols"])
    _limit_ciphers(context, settings["ssl.cipher.suites"])
    expires_at_ms = _load_own(context, settings)
    # As in Kafka: for SASL_SSL only where it is said of that listener.
    asked = settings.own("ssl.client.auth") if has_sasl else settings["ssl.client.auth"]
    context.verify_mode = CLIENT_AUTH[asked or "none"]
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trusted(context, settings)
    return context, expires_at_ms


def _limit_versions(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    if not names:
        raise _bad("ssl.enabled.protocols", "name at least one")
    versions = sorted(VERSIONS[name] for name in names)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _limit_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    wanted = [_openssl_name(name) for name in names if not _OF_TLS_1_3.match(name)]
    if not wanted:
        return
    try:
        context.set_ciphers(":".join(wanted))
    except ssl.SSLError:
        raise _bad("ssl.cipher.suites", f"none of {', '.join(names)} is known") from None


def _openssl_name(name: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is OpenSSL's ECDHE-RSA-AES128-GCM-SHA256."""
    if not name.startswith("TLS_") or "_WITH_" not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(128|256)", r"AES\1", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = [cipher] if exchange == "RSA" else [exchange, cipher]
    return "-".join(parts).replace("_", "-")


def _load_own(context: ssl.SSLContext, settings: ListenerSettings) -> int:
    key, chain = settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    location = settings["ssl.keystore.location"]
    if (key is None) != (chain is None):
        raise _bad("ssl.keystore.key", "goes together with ssl.keystore.certificate.chain")
    if key is not None and location is not None:
        raise _bad("ssl.keystore.location", "give it, or ssl.keystore.key, not both")
    if key is None and location is None:
        raise _bad("ssl.keystore.location", "a listener with TLS needs a key and a certificate")
    text = f"{_lines(key)}\n{_lines(chain)}\n" if key is not None else _read(_FILES[0], location)
    name = "ssl.keystore.key" if key is not None else f"ssl.keystore.location: {location}"
    password = settings["ssl.key.password"]
    try:
        _with_file(text, lambda path: context.load_cert_chain(path, password=password or ""))
        return not_after_ms(ssl.PEM_cert_to_DER_cert(_first_certificate(text)))
    except ssl.SSLError as problem:
        raise _bad(name, _why(problem)) from None
    except NotACertificate as problem:
        raise _bad(name, str(problem)) from None


def _load_trusted(context: ssl.SSLContext, settings: ListenerSettings) -> None:
    text, location = settings["ssl.truststore.certificates"], settings["ssl.truststore.location"]
    name = "ssl.truststore.location"
    if text is not None and location is not None:
        raise _bad(name, "give it, or ssl.truststore.certificates, not both")
    if text is None and location is None:
        raise _bad(name, "whom to trust must be said where clients show certificates")
    try:
        context.load_verify_locations(cadata=_lines(text) if text else _read(name, location))
    except ssl.SSLError as problem:
        raise _bad(name, _why(problem)) from None
    revoked = settings["ssl.crl.location"]
    if revoked:
        try:
            context.load_verify_locations(cafile=revoked)
        except OSError as problem:
            raise _bad("ssl.crl.location", f"{revoked}: {_why(problem)}") from None
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _read(name: str, location: str) -> str:
    try:
        return Path(location).read_text(encoding="ascii", errors="replace")
    except OSError as problem:
        raise _bad(name, f"{location}: {problem.strerror}") from None


def _lines(text: str) -> str:
    """PEM given in one line, as files of settings have it, in lines again."""
    if "\n" in text:
        return text
    blocks = _PEM.findall(text.replace("\\n", "\n"))
    return "\n".join(
        "\n".join((f"-----BEGIN {kind}-----", *_wrapped(body), f"-----END {kind}-----"))
        for kind, body in blocks
    )


def _wrapped(body: str) -> list[str]:
    return textwrap.wrap("".join(body.split()), 64)


def _first_certificate(text: str) -> str:
    for found in _PEM.finditer(text):
        if found[1] == "CERTIFICATE":
            return found[0]
    raise NotACertificate("there is no certificate in it")


def _with_file(text: str, use: Callable[[str], None]) -> None:
    """OpenSSL reads keys from files only. This one is readable by nobody else, and soon gone."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii", errors="replace") as file:
        file.write(text)
        file.flush()
        use(file.name)


def _why(problem: OSError) -> str:
    if isinstance(problem, ssl.SSLError):
        reason = (problem.reason or "not readable").replace("_", " ").lower()
        return (
            f"{reason}; it must be PEM: a key (ssl.key.password opens it), its certificate and "
            "those above it"
        )
    return problem.strerror or str(problem)


def _bad(name: str, why: str) -> BadSetting:
    return BadSetting(f"Invalid value for configuration {name}: {why}")
