"""The SCRAM credentials that the catalog keeps: of passwords only what was made of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from semel.broker.catalog.journal import Record
from semel.core.access.scram import ScramCredential, ScramMechanism

FEWEST_ITERATIONS = 4096

Key = tuple[ScramMechanism, str]


class ScramCredentials(dict[Key, ScramCredential]):
    """By mechanism and user."""

    def __repr__(self) -> str:
        return f"ScramCredentials({len(self)} of them)"

    def usual_iterations(self, mechanism: ScramMechanism) -> int:
        """What most users of a mechanism have, as far as the first of them tells."""
        found = (one.iterations for (known, _), one in self.items() if known is mechanism)
        return next(found, FEWEST_ITERATIONS)

    def apply(self, record: Record) -> None:
        key = ScramMechanism(record["mechanism"]), record["user"]
        if "stored_key" not in record:
            del self[key]
            return
        self[key] = ScramCredential(
            record["iterations"],
            *(base64.b64decode(record[name]) for name in ("salt", "stored_key", "server_key")),
        )

    def snapshot(self) -> Iterator[Record]:
        return (credential_record(key, credential) for key, credential in self.items())


def credential_record(key: Key, credential: ScramCredential | None) -> Record:
    """None removes it."""
    mechanism, user = key
    record: Record = {"is": "scram credential", "mechanism": mechanism.value, "user": user}
    if credential is not None:
        record["iterations"] = credential.iterations
        for name in ("salt", "stored_key", "server_key"):
            record[name] = base64.b64encode(getattr(credential, name)).decode()
    return record
