"""One question or more per API, as plain trees: what the access matrix asks of both brokers.

A tree's values are fields of the request; a list of trees becomes a list of its structures. Where
the answer would change something that later questions see, the question is one that is refused
after access was asked (a member that is not there, a producer of an old epoch), or only validated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from semel.wire.batches import BatchBuilder
from semel.wire.messages import ADVERTISED, request_class
from semel.wire.schema import Message, Struct

#: What the rules name: exactly, by their prefix "m-", or by "*". The last is out of the prefix.
TOPIC, GHOST, OTHER = "m-topic", "m-ghost", "z-other"
GROUP, TXN = "m-group", "m-txn"
NODE = 1
#: Stands for the id of a topic, which each broker chooses.
ID, OTHER_ID = UUID(int=1), UUID(int=2)
UNKNOWN_ID = UUID(int=3)

Tree = dict[str, Any]
NAMES = (TOPIC, GHOST, OTHER)
IDS = (ID, OTHER_ID, UNKNOWN_ID)


class Question(NamedTuple):
    name: str
    api_key: int
    versions: tuple[int, ...]
    tree: Tree

    def request(self, ids: dict[UUID, UUID]) -> Message:
        built: Message = _built(request_class(self.api_key), self.tree, ids)
        return built


def _built(shape: Any, tree: Tree, ids: dict[UUID, UUID]) -> Any:
    made = shape()
    owner = shape if issubclass(shape, Message) else shape.OWNER
    for name, value in tree.items():
        field = shape.FIELDS[name]
        setattr(made, name, _value(getattr(owner, field.element or "", None), value, ids))
    return made


def _value(element: Any, value: Any, ids: dict[UUID, UUID]) -> Any:
    if isinstance(value, list):
        return [_value(element, one, ids) for one in value]
    if isinstance(value, dict):
        assert issubclass(element, Struct)
        return _built(element, value, ids)
    return ids.get(value, value) if isinstance(value, UUID) else value


def batch(transactional: bool = False, producer_id: int = -1) -> bytes:
    """One record. A transactional one is of a producer that nobody knows: it is never written."""
    builder = BatchBuilder()
    builder.append(None, b"v", 1_700_000_000_000)
    if transactional:
        return bytes(
            builder.build(
                producer_id=987_654, producer_epoch=0, base_sequence=0, transactional=True
            )
        )
    return bytes(builder.build())


def ends(api_key: int, first: int | None = None, last: int | None = None) -> tuple[int, ...]:
    """The oldest and the newest version of an API that there are between two."""
    versions = ADVERTISED[api_key]
    low = versions[0] if first is None else first
    high = versions[-1] if last is None else last
    return (low,) if low == high else (low, high)


def by_name(fields: Tree | None = None, key: str = "name") -> list[Tree]:
    return [{key: name} | (fields or {}) for name in NAMES]


def by_id(fields: Tree | None = None) -> list[Tree]:
    return [{"topic_id": id} | (fields or {}) for id in IDS]


def questions() -> Iterator[Question]:
    for api_key, rows in (_data() | _groups() | _transactions() | _cluster()).items():
        for label, versions, tree in rows:
            yield Question(f"{label} ({api_key})", api_key, versions, tree)
    yield Question(  # the last: it makes a topic in Kafka that other answers would show
        "FindCoordinator of a share (10)", 10, (6,),
        {"coordinator_keys": [f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0"], "key_type": 2},
    )  # fmt: skip


Rows = dict[int, list[tuple[str, tuple[int, ...], Tree]]]


def _data() -> Rows:
    part = [{"partition_index": 0}]
    produced = {"partition_data": [{"index": 0, "records": batch()}]}
    in_txn = {"partition_data": [{"index": 0, "records": batch(transactional=True)}]}
    fetched = {"partitions": [{"partition": 0, "partition_max_bytes": 100}]}
    ours = {"timeout_ms": 5000, "acks": -1}
    return {
        0: [
            ("Produce", ends(0, 3, 12), ours | {"topic_data": by_name(produced)}),
            ("Produce by id", (13,), ours | {"topic_data": by_id(produced)}),
            ("Produce, strange acks", ends(0, 3, 12),
             {"acks": 7, "topic_data": by_name(produced)}),
            ("Produce in a transaction", ends(0, 3, 12),
             ours | {"transactional_id": TXN, "topic_data": by_name(in_txn)}),
            ("Produce in a transaction by id", (13,),
             ours | {"transactional_id": TXN, "topic_data": by_id(in_txn)}),
            ("Produce in no transaction's name", ends(0, 3, 12),
             ours | {"transactional_id": None, "topic_data": by_name(in_txn)}),
        ],
        1: [
            ("Fetch", ends(1, None, 12),
             {"topics": by_name(fetched, "topic"), "session_epoch": -1}),
            ("Fetch by id", (13, 18), {"topics": by_id(fetched), "session_epoch": -1}),
            ("Fetch as a follower", ends(1, None, 12),
             {"replica_id": 7, "topics": by_name(fetched, "topic"), "session_epoch": -1}),
            ("Fetch as a follower by id", (13,),
             {"replica_id": 7, "topics": by_id(fetched), "session_epoch": -1}),
        ],
        2: [("ListOffsets", ends(2), {
            "replica_id": -1,
            "topics": by_name({"partitions": [{"partition_index": 0, "timestamp": -1}]}),
        })],
        3: [
            ("Metadata", (0, 1), {"topics": by_name()}),
            ("Metadata", (4, 7),
             {"topics": by_name(), "allow_auto_topic_creation": False}),
            ("Metadata with operations", (8, 10), {
                "topics": by_name(), "allow_auto_topic_creation": False,
                "include_cluster_authorized_operations": True,
                "include_topic_authorized_operations": True,
            }),
            ("Metadata with operations", (11, 13), {
                "topics": by_name(), "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": True,
            }),
            ("Metadata by id", (12, 13),
             {"topics": [{"topic_id": id, "name": None} for id in IDS]}),
            ("Metadata of all", (1, 13), {"topics": None}),
            ("Metadata of none", (1, 13), {"topics": []}),
        ],
        21: [("DeleteRecords", ends(21), {
            "topics": by_name({"partitions": [{"partition_index": 0, "offset": 0}]}),
            "timeout_ms": 5000,
        })],
        23: [("OffsetForLeaderEpoch", ends(23), {
            "topics": by_name({"partitions": [{"partition": 0, "leader_epoch": 0}]}, "topic"),
        })],
        61: [("DescribeProducers", ends(61), {"topics": by_name({"partition_indexes": [0, 9]})})],
        75: [
            ("DescribeTopicPartitions", ends(75), {"topics": by_name()}),
            ("DescribeTopicPartitions of all", ends(75), {"topics": []}),
            ("DescribeTopicPartitions from a cursor", ends(75), {
                "topics": by_name(), "cursor": {"topic_name": TOPIC, "partition_index": 1},
            }),
        ],
        8: [
            ("OffsetCommit", ends(8, None, 9), {
                "group_id": GROUP, "member_id": "nobody", "generation_id_or_member_epoch": 5,
                "topics": by_name({"partitions": [_committed()]}),
            }),
            ("OffsetCommit by id", (10,), {
                "group_id": GROUP, "member_id": "nobody", "generation_id_or_member_epoch": 5,
                "topics": by_id({"partitions": [_committed()]}),
            }),
        ],
        9: [
            ("OffsetFetch", ends(9, None, 7),
             {"group_id": GROUP, "topics": by_name({"partition_indexes": [0]})}),
            ("OffsetFetch of all", (2, 7), {"group_id": GROUP, "topics": None}),
            ("OffsetFetch of groups", (8, 9), {"groups": [
                {"group_id": name, "topics": by_name({"partition_indexes": [0]})}
                for name in (GROUP, "m-nogroup", "z-group")
            ]}),
            ("OffsetFetch of groups by id", (10,), {"groups": [
                {"group_id": name, "topics": by_id({"partition_indexes": [0]})}
                for name in (GROUP, "z-group")
            ]}),
            ("OffsetFetch of all of groups", (8, 10),
             {"groups": [{"group_id": GROUP, "topics": None}]}),
        ],
        47: [("OffsetDelete", ends(47), {
            "group_id": "m-nogroup", "topics": by_name({"partitions": part}),
        }), ("OffsetDelete of a group", ends(47), {
            "group_id": GROUP,
            "topics": by_name({"partitions": [{"partition_index": 1}]}),
        })],
    }  # fmt: skip


def _committed() -> Tree:
    return {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}


def _groups() -> Rows:
    three = [GROUP, "m-nogroup", "z-group"]
    member = {"group_id": GROUP, "member_id": "nobody", "generation_id": 5}
    beat = {"group_id": "m-newgroup", "member_id": "nobody-in-particular", "member_epoch": 5}
    return {
        10: [
            ("FindCoordinator of a group", (0,), {"key": GROUP}),
            ("FindCoordinator of a group", (1, 3), {"key": GROUP, "key_type": 0}),
            ("FindCoordinator of a transaction", (1, 3), {"key": TXN, "key_type": 1}),
            ("FindCoordinator of nothing", (1, 3), {"key": "", "key_type": 1}),
            ("FindCoordinator of groups", (4, 6), {"coordinator_keys": [*three, ""],
                                                  "key_type": 0}),
            ("FindCoordinator of transactions", (4, 6),
             {"coordinator_keys": [TXN, "z-txn", ""], "key_type": 1}),
            ("FindCoordinator of a strange kind", (4, 6),
             {"coordinator_keys": [GROUP], "key_type": 9}),
        ],
        11: [
            ("JoinGroup", ends(11), {
                "group_id": GROUP, "member_id": "", "session_timeout_ms": 10_000,
                "protocol_type": "consumer", "protocols": [],
            }),
            ("JoinGroup of a member", ends(11), {
                "group_id": GROUP, "member_id": "nobody", "session_timeout_ms": 10_000,
                "protocol_type": "consumer", "protocols": [{"name": "x", "metadata": b""}],
            }),
        ],
        12: [("Heartbeat", ends(12), member)],
        13: [
            ("LeaveGroup", (0, 2), {"group_id": GROUP, "member_id": "nobody"}),
            ("LeaveGroup of members", (3, 5),
             {"group_id": GROUP, "members": [{"member_id": "nobody"}, {"member_id": "another"}]}),
        ],
        14: [("SyncGroup", ends(14), member)],
        15: [
            ("DescribeGroups", (0, 2), {"groups": three}),
            ("DescribeGroups with operations", (3, 6),
             {"groups": three, "include_authorized_operations": True}),
        ],
        16: [("ListGroups", ends(16), {})],
        42: [("DeleteGroups", ends(42), {"groups_names": ["m-nogroup", "z-group"]})],
        68: [
            ("ConsumerGroupHeartbeat", ends(68), beat),
            ("ConsumerGroupHeartbeat with topics", ends(68), beat | {
                "subscribed_topic_names": [TOPIC, GHOST],
            }),
        ],
        69: [
            ("ConsumerGroupDescribe", ends(69), {"group_ids": three}),
            ("ConsumerGroupDescribe with operations", ends(69),
             {"group_ids": three, "include_authorized_operations": True}),
        ],
        76: [("ShareGroupHeartbeat", ends(76), {
            "group_id": "m-share", "member_id": "x", "subscribed_topic_names": [TOPIC],
        })],
        77: [("ShareGroupDescribe", ends(77), {"group_ids": three})],
        78: [("ShareFetch", ends(78), {"group_id": "m-share", "member_id": "x"})],
        79: [("ShareAcknowledge", ends(79), {"group_id": "m-share", "member_id": "x"})],
        88: [("StreamsGroupHeartbeat", ends(88), {"group_id": "m-streams", "member_id": "x"})],
        89: [("StreamsGroupDescribe", ends(89), {"group_ids": three})],
        90: [("DescribeShareGroupOffsets", ends(90), {
            "groups": [{"group_id": name, "topics": [{"topic_name": TOPIC, "partitions": [0]}]}
                       for name in three],
        })],
        91: [("AlterShareGroupOffsets", ends(91), {
            "group_id": "m-share",
            "topics": [{"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}],
        })],
        92: [("DeleteShareGroupOffsets", ends(92),
              {"group_id": "m-share", "topics": [{"topic_name": TOPIC}]})],
    } | {
        key: [(f"share state {key}", ends(key), {"group_id": "m-share", "topics": [
            {"topic_id": ID, "partitions": [{"partition": 0}]}
        ]})]
        for key in (83, 84, 85, 86, 87)
    }  # fmt: skip


def _transactions() -> Rows:
    nobody = {"producer_id": 987_654, "producer_epoch": 0}
    topics = by_name({"partitions": [0]})
    transaction = {"transactional_id": TXN, "topics": topics} | nobody
    old = {
        "v3_and_below_producer_id": 987_654, "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": topics,
    }  # fmt: skip
    return {
        22: [
            ("InitProducerId", (0, 5), {"transactional_id": None}),
            ("InitProducerId of a transactional id", (0, 5),
             {"transactional_id": TXN, "transaction_timeout_ms": -5}),
            ("InitProducerId of an empty id", (0, 5),
             {"transactional_id": "", "transaction_timeout_ms": 1000}),
        ],
        24: [
            ("AddPartitionsToTxn", (0, 3), {"v3_and_below_transactional_id": TXN} | old),
            ("AddPartitionsToTxn of no id", (0, 3), {"v3_and_below_transactional_id": ""} | old),
            ("AddPartitionsToTxn of brokers", (4, 5), {"transactions": [
                transaction, transaction | {"transactional_id": "z-txn"},
            ]}),
            ("AddPartitionsToTxn, to verify", (4, 5),
             {"transactions": [transaction | {"verify_only": True}]}),
        ],
        25: [("AddOffsetsToTxn", ends(25), {"transactional_id": TXN, "group_id": GROUP} | nobody),
             ("AddOffsetsToTxn of no id", ends(25),
              {"transactional_id": "", "group_id": GROUP} | nobody)],
        26: [("EndTxn", ends(26), {"transactional_id": TXN} | nobody),
             ("EndTxn of no id", ends(26), {"transactional_id": ""} | nobody)],
        27: [("WriteTxnMarkers", ends(27), {"markers": [nobody | {
            "topics": [{"name": GHOST, "partition_indexes": [0]}],
        }]})],
        28: [("TxnOffsetCommit", ends(28), nobody | {
            "transactional_id": TXN, "group_id": GROUP,
            "topics": by_name({"partitions": [_committed()]}),
        }), ("TxnOffsetCommit of no group", ends(28), nobody | {
            "transactional_id": TXN, "group_id": "",
            "topics": by_name({"partitions": [_committed()]}),
        })],
        65: [("DescribeTransactions", ends(65), {"transactional_ids": [TXN, "m-no", "z-no", ""]})],
        66: [("ListTransactions", ends(66), {})],
    }  # fmt: skip


def _cluster() -> Rows:
    resources = [
        {"resource_type": kind, "resource_name": name}
        for kind, name in (
            (2, TOPIC), (2, GHOST), (2, OTHER), (4, "1"), (4, ""), (32, GROUP), (32, "z-group"),
        )
    ]  # fmt: skip
    wanted = {"num_partitions": 1, "replication_factor": 1}
    nothing = {"configs": [{"name": "retention.ms", "value": "1000"}]}
    altered = [
        one | nothing for one in resources if one["resource_type"] == 2
    ] + [
        {"resource_type": 4, "resource_name": "1",
         "configs": [{"name": "log.retention.ms", "value": "1000"}]},
        {"resource_type": 32, "resource_name": GROUP,
         "configs": [{"name": "consumer.session.timeout.ms", "value": "45000"}]},
    ]  # fmt: skip
    filters = {
        "resource_type_filter": 1, "resource_name_filter": "nothing", "pattern_type_filter": 1,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    rule = {
        "resource_type": 2, "resource_name": "", "resource_pattern_type": 3,
        "principal": "User:x", "host": "*", "operation": 3, "permission_type": 3,
    }  # fmt: skip
    return {
        19: [
            ("CreateTopics", ends(19), {"validate_only": True, "topics": by_name(wanted)}),
            ("CreateTopics twice", ends(19),
             {"validate_only": True, "topics": by_name(wanted) + by_name(wanted)}),
        ],
        20: [
            ("DeleteTopics", ends(20, None, 5),
             {"topic_names": [GHOST, "z-ghost"], "timeout_ms": 5000}),
            ("DeleteTopics twice", ends(20, None, 5),
             {"topic_names": [TOPIC, TOPIC, OTHER, OTHER], "timeout_ms": 5000}),
            ("DeleteTopics by name or id", (6,), {"timeout_ms": 5000, "topics": [
                {"name": GHOST}, {"name": "z-ghost"}, {"name": None, "topic_id": UNKNOWN_ID},
            ]}),
        ],
        29: [("DescribeAcls", ends(29), filters)],
        30: [("CreateAcls", ends(30), {"creations": [rule, rule | {"resource_type": 4}]})],
        31: [("DeleteAcls", ends(31), {"filters": [filters, filters]})],
        32: [("DescribeConfigs", ends(32), {"resources": [
            one | {"configuration_keys": ["nothing"]} for one in resources
        ]}), ("DescribeConfigs of loggers", ends(32), {"resources": [
            {"resource_type": 8, "resource_name": "1", "configuration_keys": ["nothing"]},
            {"resource_type": 16, "resource_name": "x", "configuration_keys": ["nothing"]},
        ]})],
        33: [("AlterConfigs", ends(33), {"validate_only": True, "resources": altered})],
        44: [("IncrementalAlterConfigs", ends(44),
              {"validate_only": True, "resources": altered})],
        34: [("AlterReplicaLogDirs", ends(34), {"dirs": [
            {"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [0]}]},
        ]})],
        35: [("DescribeLogDirs", ends(35),
              {"topics": [{"topic": TOPIC, "partitions": [0]}]})],
        37: [
            ("CreatePartitions", ends(37),
             {"validate_only": True, "timeout_ms": 5000,
              "topics": by_name({"count": 9, "assignments": None})}),
            ("CreatePartitions twice", ends(37), {"validate_only": True, "timeout_ms": 5000,
             "topics": by_name({"count": 9, "assignments": None}) * 2}),
        ],
        38: [("CreateDelegationToken", ends(38), {"max_lifetime_ms": -1}),
             ("CreateDelegationToken of another", (3,), {
                 "owner_principal_type": "User", "owner_principal_name": "m-user",
                 "max_lifetime_ms": -1})],
        39: [("RenewDelegationToken", ends(39), {"hmac": b"x"})],
        40: [("ExpireDelegationToken", ends(40), {"hmac": b"x"})],
        41: [("DescribeDelegationToken", ends(41), {"owners": None})],
        43: [("ElectLeaders", ends(43),
              {"topic_partitions": [{"topic": TOPIC, "partitions": [0]}]}),
             ("ElectLeaders of all", ends(43), {"topic_partitions": None})],
        45: [("AlterPartitionReassignments", ends(45), {"topics": [
            {"name": GHOST, "partitions": [{"partition_index": 0, "replicas": [1]}]},
        ]})],
        46: [("ListPartitionReassignments", ends(46), {"topics": None})],
        48: [("DescribeClientQuotas", ends(48), {"components": []})],
        49: [("AlterClientQuotas", ends(49), {"validate_only": True, "entries": [{
            "entity": [{"entity_type": "user", "entity_name": ""}],
            "ops": [{"key": "producer_byte_rate", "value": 5.0}],
        }]})],
        50: [("DescribeUserScramCredentials", ends(50), {"users": [{"name": "x"}]})],
        51: [("AlterUserScramCredentials", ends(51),
              {"deletions": [{"name": "x", "mechanism": 1}]})],
        55: [("DescribeQuorum", ends(55), {"topics": [
            {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]},
        ]})],
        57: [("UpdateFeatures", ends(57), {"feature_updates": [
            {"feature": "no.such", "max_version_level": 1},
        ]})],
        60: [
            ("DescribeCluster", ends(60), {"include_cluster_authorized_operations": True}),
            ("DescribeCluster without", ends(60), {}),
        ],
        64: [("UnregisterBroker", ends(64), {"broker_id": 99})],
        74: [("ListConfigResources", (0,), {}),
             ("ListConfigResources", (1,), {"resource_types": [2, 4]})],
        80: [("AddRaftVoter", ends(80), {"cluster_id": "elsewhere"})],
        81: [("RemoveRaftVoter", ends(81), {"cluster_id": "elsewhere"})],
    }  # fmt: skip
