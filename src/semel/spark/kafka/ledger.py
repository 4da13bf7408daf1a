"""The ledger on Spark's own connections: one application's entry, written and read by the driver.

What the ledger is and how it is searched: `semel.client.machines.ledger`.
"""

from __future__ import annotations

import logging
import time
from typing import Any, TypeVar

from semel.client.errors import error_for
from semel.client.machines.ledger import (
    LEDGER_PARTITION,
    LEDGER_TOPIC,
    TOPIC_CONFIGS,
    LedgerRefusal,
    Search,
    Unstable,
    all_entries,
    check_policy,
    last_entry,
    partition_of,
)
from semel.errors import RefusedError, SemelError
from semel.spark.kafka.client import BlockingCluster, check, is_an_answer, patiently
from semel.spark.kafka.transactions import Lender
from semel.spark.query_batch import WRITER, QueryBatch
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.schema import Message

log = logging.getLogger(__name__)

_TOPIC = 2  # ConfigResource.Type
_PATIENCE_S = 60.0
_LOOK_AGAIN_S = 0.1
_SAY_EVERY_S = 5.0

T = TypeVar("T")


class SparkLedger:
    """One application's entry in the ledger's topic."""

    def __init__(
        self, cluster: BlockingCluster, application: str, topic: str = LEDGER_TOPIC
    ) -> None:
        self.cluster = cluster
        self.application = application
        self.topic = topic

    def create(self) -> None:
        """Create the topic if it is missing, and refuse one that would forget."""
        creatable = CreateTopicsRequest.CreatableTopic(
            name=self.topic,
            num_partitions=1,
            replication_factor=-1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in TOPIC_CONFIGS.items()
            ],
        )

        def attempt() -> None:
            answer = self.cluster.any().call(CreateTopicsRequest(topics=[creatable]))
            code = answer.topics[0].error_code
            if code != ErrorCode.TOPIC_ALREADY_EXISTS:
                check(code, f"creating {self.topic!r}")

        try:
            self.cluster.refresh([self.topic])
        except SemelError as error:
            if not is_an_answer(error):
                raise
            patiently(attempt, f"creating {self.topic!r}", _PATIENCE_S)
        patiently(self._find_leader, f"finding {self.topic!r}", _PATIENCE_S)
        self._check_policy()

    def write(self, lender: Lender, batch: QueryBatch) -> None:
        """Into the lender's open transaction."""
        entry = batch.entry(self.application)
        lender.write(self.topic, LEDGER_PARTITION, entry.key, entry.encode())

    def find(self) -> QueryBatch | None:
        """Like `read`, for somebody who does not own the topic: None where it is missing."""
        try:
            self.cluster.refresh([self.topic])
        except SemelError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
        return self.read()

    def read(self) -> QueryBatch | None:
        """The last batch that the application committed. Only what is read after a fence is final.

        Another application's open transaction hides everything behind it, so this waits until
        the last stable offset has passed what was the end of the topic.
        """
        try:
            entry = self._run(last_entry(self.topic, self.application))
            return None if entry is None else QueryBatch.of(entry)
        except LedgerRefusal as refusal:
            raise RefusedError(str(refusal)) from None

    def application_of(self, query_id: str) -> str | None:
        """The application under which a query is in the ledger, if it is another than this one."""
        for entry in self._run(all_entries(self.topic)).values():
            note = entry.note if entry.writer == WRITER else None
            is_of_query = isinstance(note, dict) and note.get("query") == query_id
            if is_of_query and entry.application != self.application:
                return entry.application
        return None

    def _run(self, search: Search[T]) -> T:
        """Carries a search's requests to the leader, and its answers back."""
        said = time.monotonic() - _SAY_EVERY_S
        try:
            question = next(search)
            while True:
                if not isinstance(question, Unstable):
                    question = search.send(self._ask_leader(question))
                    continue
                if time.monotonic() - said >= _SAY_EVERY_S:
                    said = time.monotonic()
                    log.warning(
                        "waiting for another application's open transaction in %s: offset %d of %d"
                        " is stable; it ends when that application commits, aborts or times out",
                        self.topic,
                        question.stable_offset,
                        question.end_offset,
                    )
                time.sleep(_LOOK_AGAIN_S)
                question = next(search)
        except StopIteration as done:
            found: T = done.value
            return found

    def _ask_leader(self, request: Message) -> Any:
        def attempt() -> Any:
            part = partition_of(self.cluster.leader(self.topic, LEDGER_PARTITION).call(request))
            check(part.error_code, f"reading {self.topic!r}")
            return part

        return patiently(
            attempt, f"reading {self.topic!r}", _PATIENCE_S, self.cluster.forget_leaders
        )

    def _find_leader(self) -> None:
        self.cluster.refresh([self.topic])
        if self.cluster.leader_id(self.topic, LEDGER_PARTITION) < 0:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {self.topic!r}")

    def _check_policy(self) -> None:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC,
            resource_name=self.topic,
            configuration_keys=["cleanup.policy"],
        )
        answer = self.cluster.any().call(DescribeConfigsRequest(resources=[resource]))
        policies = [entry.value for result in answer.results for entry in result.configs]
        try:
            check_policy(self.topic, policies[0] if policies else None)
        except LedgerRefusal as refusal:
            raise RefusedError(str(refusal)) from None
