"""Offsets by time: the earliest, the latest, or the first at or after a timestamp."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from semel.client.cluster import Cluster
from semel.client.errors import error_for, no_such_partition
from semel.client.machines.membership import by_topic
from semel.client.machines.patience import Deadline
from semel.client.machines.types import Node, TopicPartition
from semel.wire.errors import ErrorCode
from semel.wire.messages.list_offsets import ListOffsetsRequest

ISOLATION = {"read_uncommitted": 0, "read_committed": 1}


class FoundOffset(NamedTuple):
    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


async def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    isolation_level: str,
    deadline: Deadline,
) -> dict[TopicPartition, FoundOffset]:
    """For each partition a timestamp, or −1 for the end, −2 for the beginning."""
    found: dict[TopicPartition, FoundOffset] = {}
    attempt = 0
    while len(found) < len(wanted):
        missing = {p: at for p, at in wanted.items() if p not in found}
        await cluster.check_topics({p.topic for p in missing}, deadline)
        problem: tuple[TopicPartition, ErrorCode] | None = None
        leaders: dict[Node, list[TopicPartition]] = {}
        for partition in missing:
            leader = cluster.metadata.leader(partition)
            if leader is None:
                if attempt:  # metadata is fresh by now
                    _check_exists(cluster, partition)
                problem = partition, ErrorCode.LEADER_NOT_AVAILABLE
            else:
                leaders.setdefault(leader, []).append(partition)
        answers = await asyncio.gather(
            *(
                _ask_leader(cluster, node, {p: missing[p] for p in mine}, isolation_level, deadline)
                for node, mine in leaders.items()
            )
        )
        for answer in answers:
            for partition, (code, offset) in answer.items():
                if code is ErrorCode.NONE:
                    found[partition] = offset
                else:
                    problem = partition, code
        if problem is not None:
            attempt += 1
            await _wait_or_raise(cluster, problem, attempt, deadline)
    return found


def _check_exists(cluster: Cluster, partition: TopicPartition) -> None:
    topic = cluster.metadata.topics.get(partition.topic)
    if topic is not None and partition.partition not in topic.partitions:
        raise no_such_partition(partition, len(topic.partitions))


async def _wait_or_raise(
    cluster: Cluster, problem: tuple[TopicPartition, ErrorCode], attempt: int, deadline: Deadline
) -> None:
    partition, code = problem
    if not await cluster.may_try_again(code, attempt, deadline):
        raise error_for(code, f"the offset of {partition} cannot be found")
    cluster.metadata.expire()


async def _ask_leader(
    cluster: Cluster,
    node: Node,
    wanted: Mapping[TopicPartition, int],
    isolation_level: str,
    deadline: Deadline,
) -> dict[TopicPartition, tuple[ErrorCode, FoundOffset]]:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=ISOLATION[isolation_level],
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=-1,
                        timestamp=wanted[TopicPartition(topic, index)],
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(wanted).items()
        ],
    )
    answer = await cluster.ask(request, node=node, deadline=deadline)
    return {
        TopicPartition(topic.name, result.partition_index): (
            ErrorCode.of(result.error_code),
            FoundOffset(result.offset, result.timestamp, result.leader_epoch),
        )
        for topic in answer.topics
        for result in topic.partitions
    }
