"""How others spell our settings: Java's clients, librdkafka (confluent-kafka) and kafka-python.

Our own name of a setting is Kafka's with underscores in place of dots. With dots it is Java's name,
and most often librdkafka's. Both forms are taken everywhere. Here is the rest: names that differ,
names that say it in another way, and names that have nothing to set here, with what to do instead.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from semel.client.settings.values import did_you_mean
from semel.errors import UsageError

#: Another's name → ours.
SAME = {
    # librdkafka
    "metadata.broker.list": "bootstrap_servers",
    "socket.timeout.ms": "request_timeout_ms",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms",
    "sasl.mechanisms": "sasl_mechanism",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "request.required.acks": "acks",
    "compression.codec": "compression_type",
    "message.timeout.ms": "delivery_timeout_ms",
    "message.max.bytes": "max_request_size",
    "queue.buffering.max.ms": "linger_ms",
    "max.in.flight": "max_in_flight_requests_per_connection",
    "fetch.wait.max.ms": "fetch_max_wait_ms",
    "fetch.message.max.bytes": "max_partition_fetch_bytes",
    # Java, whose stores may be PEM files since 2.7 (KIP-651); the key is in the same file
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.password": "ssl_password",
    # kafka-python and aiokafka
    "sasl.plain.username": "sasl_username",
    "sasl.plain.password": "sasl_password",
}

#: The words of librdkafka that differ from Java's, by our setting.
_WORDS = {
    "auto_offset_reset": {
        "smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest",
        "error": "none",
    },
}  # fmt: skip

_PEM = "certificates and keys are PEM files here, named by ssl_cafile, ssl_certfile and ssl_keyfile"
_BY_FUNCTION = "give a function by the keyword {}"
#: Names that others know and that have nothing to set here → what to do instead.
ELSEWHERE = {
    "ssl.truststore.password": f"{_PEM}; authorities need no password",
    "ssl.keystore.password": f"{_PEM}; the key's password is ssl_password",
    "ssl.truststore.certificates": _PEM,
    "ssl.keystore.certificate.chain": _PEM,
    "ssl.keystore.key": _PEM,
    "ssl.ca.pem": _PEM,
    "ssl.certificate.pem": _PEM,
    "ssl.key.pem": _PEM,
    "enable.ssl.certificate.verification": "give an ssl_context that checks what you want",
    "sasl.oauthbearer.token.endpoint.url": "give a function by sasl_oauth_token that gets a token",
    "key.serializer": _BY_FUNCTION.format("key_serializer"),
    "value.serializer": _BY_FUNCTION.format("value_serializer"),
    "key.deserializer": _BY_FUNCTION.format("key_deserializer"),
    "value.deserializer": _BY_FUNCTION.format("value_deserializer"),
    "retries": "a record is sent again until delivery_timeout_ms is over",
    "message.send.max.retries": "a record is sent again until delivery_timeout_ms is over",
    "api.version": "versions are agreed with each broker",
    "api.version.auto.timeout.ms": "versions are agreed with each broker",
    "partitioner.class": "name the partition when you send, or let the key choose it as Java does",
    "partitioner": "name the partition when you send, or let the key choose it as Java does",
    "consumer.timeout.ms": "give poll a timeout",
    "enable.auto.offset.store": "commit the offsets that you mean",
}


def own_names(given: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The settings under our names, of those in `known`; anything else is refused with a hint."""
    values: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name, value in given.items():
        for ours, meant in _meaning(name, value, known).items():
            if ours in values and values[ours] != meant:
                raise UsageError(f"{said[ours]} and {name} are the same setting: give one of them")
            values[ours], said[ours] = meant, name
    return values


def _meaning(name: str, value: Any, known: Collection[str]) -> dict[str, Any]:
    """What a setting is under our names."""
    dotted = name.replace("_", ".")
    if dotted in _SAID_OTHERWISE:
        found = _SAID_OTHERWISE[dotted](name, value)
    else:
        found = {SAME.get(dotted, dotted.replace(".", "_")): value}
    if not found.keys() <= set(known):
        raise UsageError(_refusal(name, dotted, known))
    return {ours: _WORDS.get(ours, {}).get(meant, meant) if isinstance(meant, str) else meant
            for ours, meant in found.items()}  # fmt: skip


def _refusal(name: str, dotted: str, known: Collection[str]) -> str:
    if dotted in ELSEWHERE:
        return f"{name} is not a setting here: {ELSEWHERE[dotted]}"
    return f"unknown setting {name!r}{did_you_mean(dotted.replace('.', '_'), known)}"


def _jaas(name: str, value: Any) -> dict[str, Any]:
    """Java's way to name a user: `…PlainLoginModule required username="…" password="…";`."""
    found = {
        f"sasl_{part}": match[1]
        for part in ("username", "password")
        if (match := re.search(rf'\b{part}\s*=\s*"([^"]*)"', str(value)))
    }
    if len(found) < 2:
        raise UsageError(f'{name}: there is no username="…" password="…" in it')
    return found


def _identification(name: str, value: Any) -> dict[str, Any]:
    """Java's and librdkafka's way to say whether the host's name is checked."""
    words = {"https": True, "none": False, "": False}
    found = words.get(str(value).lower())
    if found is None:
        raise UsageError(f"{name} {value!r}: should be https, or none")
    return {"ssl_check_hostname": found}


def _store_type(name: str, value: Any) -> dict[str, Any]:
    if str(value).upper() != "PEM":
        raise UsageError(f"{name} {value!r}: {_PEM}; export what is in the store")
    return {}


def _kilobytes(name: str, value: Any) -> dict[str, Any]:
    try:
        return {"buffer_memory": int(value) * 1024}
    except (TypeError, ValueError):
        raise UsageError(f"{name} should be a number, not {value!r}") from None


_SAID_OTHERWISE: Mapping[str, Callable[[str, Any], dict[str, Any]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.endpoint.identification.algorithm": _identification,
    "ssl.truststore.type": _store_type,
    "ssl.keystore.type": _store_type,
    "queue.buffering.max.kbytes": _kilobytes,
}
