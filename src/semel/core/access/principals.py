"""Principals: who is at the other end of a connection, as Kafka names them."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class KafkaPrincipal(NamedTuple):
    """Kafka's class of that name: a type, nearly always `User`, and a name within it."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


#: Whoever comes by a listener that asks nobody who they are.
ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
