"""Users that log in by SCRAM: who there is, and their passwords, which leave here salted."""

import hashlib
import os
from dataclasses import dataclass

from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.wire.errors import ErrorCode
from semel.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from semel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)

SCRAM_MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: Kafka's own tool takes as many (ScramCredentialUtils).
_ITERATIONS = 4096
_SALT_SIZE = 24


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user, and the mechanisms that it has a password for."""

    name: str
    mechanisms: tuple[str, ...]
    iterations: tuple[int, ...]


class UserAdministration:
    _cluster: Cluster

    async def list_users(self) -> list[ScramUser]:
        """All users that can log in by SCRAM."""
        answer = await self._cluster.ask(DescribeUserScramCredentialsRequest(users=None))
        if answer.error_code:
            raise error_for(answer.error_code, "users", why=answer.error_message)
        names = {number: name for name, number in SCRAM_MECHANISMS.items()}
        found = []
        for result in answer.results:
            infos = [info for info in result.credential_infos if info.mechanism in names]
            mechanisms = tuple(names[info.mechanism] for info in infos)
            iterations = tuple(info.iterations for info in infos)
            found.append(ScramUser(result.user, mechanisms, iterations))
        return sorted(found, key=lambda user: user.name)

    async def set_password(
        self, user: str, password: str, *, mechanism: str | None = None, iterations: int = 0
    ) -> None:
        """Lets a user log in with this password, by one mechanism or by all. It makes the user."""
        if not password:
            raise ValueError("a password must not be empty")
        for name in [mechanism] if mechanism else SCRAM_MECHANISMS:
            salt, times = os.urandom(_SALT_SIZE), iterations or _ITERATIONS
            salted = hashlib.pbkdf2_hmac(_DIGESTS[name], password.encode(), salt, times)
            upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=user,
                mechanism=SCRAM_MECHANISMS[name],
                iterations=times,
                salt=salt,
                salted_password=salted,
            )
            await self._alter(AlterUserScramCredentialsRequest(upsertions=[upsertion]), user)

    async def remove_user(self, user: str, *, mechanism: str | None = None) -> None:
        """Lets a user log in no more, by one mechanism or by any. Open connections stay."""
        known = {one.name: one.mechanisms for one in await self.list_users()}.get(user, ())
        wanted = [mechanism] if mechanism else known
        if not wanted:
            raise error_for(ErrorCode.RESOURCE_NOT_FOUND, f"user {user!r}")
        for name in wanted:
            deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion(
                name=user, mechanism=SCRAM_MECHANISMS[name]
            )
            await self._alter(AlterUserScramCredentialsRequest(deletions=[deletion]), user)

    async def _alter(self, request: AlterUserScramCredentialsRequest, user: str) -> None:
        await self._cluster.refresh()
        metadata = self._cluster.metadata
        controller = metadata.nodes.get(metadata.controller_id)
        answer = await self._cluster.ask(request, node=controller)
        for result in answer.results:
            if result.error_code:
                raise error_for(result.error_code, f"user {user!r}", why=result.error_message)
