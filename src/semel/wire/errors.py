"""The one table of errors: every code of Apache Kafka 4.3.1, its kind, meaning, and what to do.

`kind` is what the code means to a transactional producer: may it send again, must it abort first,
or can it not go on? Some codes depend on who answers (a partition's leader or a coordinator); the
client's transaction manager refines those, this table holds the rule.
"""

# ruff: noqa: E501  (a table is read best with one row on one line)

from enum import Enum, IntEnum


class ProtocolError(Exception):
    """Bytes that do not follow the protocol. The only exception that reading bytes may raise."""


class ErrorKind(Enum):
    NONE = "none"
    RETRIABLE = "retriable"
    ABORTABLE = "abortable"
    FATAL = "fatal"


_NONE, _RETRY, _ABORT, _FATAL = (
    ErrorKind.NONE,
    ErrorKind.RETRIABLE,
    ErrorKind.ABORTABLE,
    ErrorKind.FATAL,
)

# Advice that many codes share.
_AGAIN = "Send it again after a short wait; clients do this by themselves."
_REFRESH = "Refresh the metadata and send it again; clients do this by themselves."
_FIND = "Look the coordinator up and send it again; clients do this by themselves."
_ABORT_AND_RETRY = "Abort the transaction and run it again."
_REJOIN = "Abort the transaction, rejoin the group and go on from the committed offsets."
_GRANT = "Grant the missing permission to this principal, or use another one."
_CORRECT = "Correct the request; sending it unchanged fails again."
_SETTINGS = "Correct the setting on the client or on the broker."
_UPGRADE = "Use a client or a broker of a version that both sides support."
_OPERATOR = "Look into the broker's log; this is for the cluster's operator."
_INTERNAL = "Brokers say this to each other; a client that sees it should report a bug."
_RESTART = "Close this producer; start a new one only if this process is meant to be the owner."


class ErrorCode(IntEnum):
    """A Kafka error code. `ErrorCode(90).kind`, `.meaning` and `.advice` explain it."""

    kind: ErrorKind
    meaning: str
    advice: str

    def __new__(cls, code: int, kind: ErrorKind, meaning: str, advice: str) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.kind = kind
        member.meaning = meaning
        member.advice = advice
        return member

    @classmethod
    def of(cls, code: int) -> "ErrorCode":
        """The member for a code off the wire; one this table does not know is an unknown error."""
        try:
            return cls(code)  # type: ignore[call-arg]
        except ValueError:
            return cls.UNKNOWN_SERVER_ERROR

    @property
    def retriable(self) -> bool:
        return self.kind is ErrorKind.RETRIABLE

    # fmt: off
    UNKNOWN_SERVER_ERROR = -1, _FATAL, "the broker failed in a way it did not foresee", _OPERATOR
    NONE = 0, _NONE, "no error", ""
    OFFSET_OUT_OF_RANGE = 1, _FATAL, "the partition holds no record at that offset", "Start from the earliest or latest offset, as `auto_offset_reset` says."
    CORRUPT_MESSAGE = 2, _RETRY, "the records' checksum or structure is wrong", "Send it again; if it repeats, suspect the network, the memory, or a record without a key in a compacted topic."
    UNKNOWN_TOPIC_OR_PARTITION = 3, _RETRY, "this broker knows no such topic or partition", "Create the topic or check its name; right after creation, refresh the metadata and send it again."
    INVALID_FETCH_SIZE = 4, _FATAL, "the size asked for in a fetch is not valid", _CORRECT
    LEADER_NOT_AVAILABLE = 5, _RETRY, "the partition has no leader at the moment", _REFRESH
    NOT_LEADER_OR_FOLLOWER = 6, _RETRY, "the partition's leader is another broker", _REFRESH
    REQUEST_TIMED_OUT = 7, _RETRY, "the broker could not finish in the time allowed", _AGAIN
    BROKER_NOT_AVAILABLE = 8, _FATAL, "the broker is not available", _OPERATOR
    REPLICA_NOT_AVAILABLE = 9, _RETRY, "the replica is not available here", _REFRESH
    MESSAGE_TOO_LARGE = 10, _ABORT, "a batch is larger than the topic accepts", "Send smaller records, or raise `max.message.bytes` of the topic."
    STALE_CONTROLLER_EPOCH = 11, _FATAL, "the controller has moved to another broker", _INTERNAL
    OFFSET_METADATA_TOO_LARGE = 12, _ABORT, "the note attached to a committed offset is too long", "Shorten the metadata string, or raise `offset.metadata.max.bytes`."
    NETWORK_EXCEPTION = 13, _RETRY, "the connection was lost before the answer came", _AGAIN
    COORDINATOR_LOAD_IN_PROGRESS = 14, _RETRY, "the coordinator is still reading its log", _AGAIN
    COORDINATOR_NOT_AVAILABLE = 15, _RETRY, "the coordinator is not available", _FIND
    NOT_COORDINATOR = 16, _RETRY, "another broker is the coordinator now", _FIND
    INVALID_TOPIC_EXCEPTION = 17, _ABORT, "the topic's name is not valid, or the topic may not be written to", "Use 1 to 249 of the characters a-z A-Z 0-9 . _ - and no internal topic."
    RECORD_LIST_TOO_LARGE = 18, _ABORT, "a batch is larger than a segment of the log", "Send smaller batches, or raise `segment.bytes` of the topic."
    NOT_ENOUGH_REPLICAS = 19, _RETRY, "too few replicas are in sync to accept the records", _AGAIN
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, _RETRY, "the records were written, but to too few replicas", _AGAIN
    INVALID_REQUIRED_ACKS = 21, _FATAL, "`acks` is neither 0, 1 nor all, or not what this request needs", _SETTINGS
    ILLEGAL_GENERATION = 22, _ABORT, "the group has moved on to another generation", _REJOIN
    INCONSISTENT_GROUP_PROTOCOL = 23, _FATAL, "this member and the group have no assignment strategy in common", "Give all members of the group at least one common strategy."
    INVALID_GROUP_ID = 24, _FATAL, "the group id is not valid", "Set a `group_id` that is not empty."
    UNKNOWN_MEMBER_ID = 25, _ABORT, "the group does not know this member (any more)", _REJOIN
    INVALID_SESSION_TIMEOUT = 26, _FATAL, "the session timeout is outside of what the broker allows", "Choose one between `group.min.session.timeout.ms` and `group.max.session.timeout.ms`."
    REBALANCE_IN_PROGRESS = 27, _ABORT, "the group is distributing its partitions anew", _REJOIN
    INVALID_COMMIT_OFFSET_SIZE = 28, _ABORT, "the offsets committed at once are too large together", "Commit fewer offsets at once, with shorter metadata."
    TOPIC_AUTHORIZATION_FAILED = 29, _ABORT, "not allowed to use this topic", _GRANT
    GROUP_AUTHORIZATION_FAILED = 30, _ABORT, "not allowed to use this group", _GRANT
    CLUSTER_AUTHORIZATION_FAILED = 31, _FATAL, "not allowed to do this on the cluster", _GRANT
    INVALID_TIMESTAMP = 32, _ABORT, "a record's timestamp is too far from the broker's clock", "Correct the timestamps or clocks, or the topic's `message.timestamp.*.max.ms`."
    UNSUPPORTED_SASL_MECHANISM = 33, _FATAL, "the broker does not offer this SASL mechanism", "Use one of the mechanisms that the broker names."
    ILLEGAL_SASL_STATE = 34, _FATAL, "the request does not fit the state of the SASL exchange", "Check that client and listener agree on the security protocol."
    UNSUPPORTED_VERSION = 35, _FATAL, "the broker does not speak this version of the request", _UPGRADE
    TOPIC_ALREADY_EXISTS = 36, _FATAL, "a topic of that name exists already", "Use it, or choose another name."
    INVALID_PARTITIONS = 37, _FATAL, "the number of partitions is not valid", "Ask for at least one, and never for fewer than there are."
    INVALID_REPLICATION_FACTOR = 38, _FATAL, "the replication factor is below one or above the number of brokers", "Ask for as many replicas as there are brokers, or fewer."
    INVALID_REPLICA_ASSIGNMENT = 39, _FATAL, "the assignment of replicas is not valid", _CORRECT
    INVALID_CONFIG = 40, _FATAL, "a configuration entry is not valid", _SETTINGS
    NOT_CONTROLLER = 41, _RETRY, "another broker is the controller", _REFRESH
    INVALID_REQUEST = 42, _FATAL, "the request contradicts itself or the protocol", _CORRECT
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, _FATAL, "the records are in a format that cannot carry this", "Write record batches of format 2."
    POLICY_VIOLATION = 44, _FATAL, "a policy of the cluster forbids this", _CORRECT
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, _ABORT, "records before these are missing, so accepting them would leave a gap", _ABORT_AND_RETRY
    DUPLICATE_SEQUENCE_NUMBER = 46, _NONE, "these records were written already", "Nothing to do: the first attempt arrived."
    INVALID_PRODUCER_EPOCH = 47, _ABORT, "the producer's epoch is not the current one: it was taken over, or its transaction timed out", "Abort; if that is refused too, another producer with this transactional id has taken over."
    INVALID_TXN_STATE = 48, _FATAL, "the transaction is not in a state that allows this", "Close this producer and start a new one; if it repeats, report a bug."
    INVALID_PRODUCER_ID_MAPPING = 49, _ABORT, "this producer id does not belong to the transactional id (any more)", "Abort: the client then asks for a new producer id."
    INVALID_TRANSACTION_TIMEOUT = 50, _FATAL, "the transaction timeout is not positive or longer than the broker allows", "Lower `transaction_timeout_ms`, or raise `transaction.max.timeout.ms` on the broker."
    CONCURRENT_TRANSACTIONS = 51, _RETRY, "the last transaction of this id is still being completed", _AGAIN
    TRANSACTION_COORDINATOR_FENCED = 52, _FATAL, "the coordinator that sent this marker has been replaced", _INTERNAL
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, _FATAL, "not allowed to use this transactional id", _GRANT
    SECURITY_DISABLED = 54, _FATAL, "the broker runs without access control", "Set authorizer.class.name of the broker first."
    OPERATION_NOT_ATTEMPTED = 55, _ABORT, "not tried, because another part of the same request failed", "Look at the other errors of this request."
    KAFKA_STORAGE_ERROR = 56, _RETRY, "the broker cannot write to its disk: it is full, or it fails", "Make room on the broker's disk, or look into its log; clients send again by themselves until their time is over."
    LOG_DIR_NOT_FOUND = 57, _FATAL, "the broker has no such log directory", _CORRECT
    SASL_AUTHENTICATION_FAILED = 58, _FATAL, "the credentials were refused", "Check user, password or token, and the mechanism."
    UNKNOWN_PRODUCER_ID = 59, _ABORT, "the partition has forgotten this producer", _ABORT_AND_RETRY
    REASSIGNMENT_IN_PROGRESS = 60, _FATAL, "partitions are being moved", "Wait until the reassignment is done."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, _FATAL, "delegation tokens are switched off", _SETTINGS
    DELEGATION_TOKEN_NOT_FOUND = 62, _FATAL, "the delegation token does not exist", "Ask for a new token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, _FATAL, "this principal may not renew the token", _GRANT
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, _FATAL, "tokens cannot be handled over this kind of connection", "Connect with SASL or mutual TLS, not with a token."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, _FATAL, "not allowed to handle this delegation token", _GRANT
    DELEGATION_TOKEN_EXPIRED = 66, _FATAL, "the delegation token has expired", "Ask for a new token."
    INVALID_PRINCIPAL_TYPE = 67, _FATAL, "the broker does not know this type of principal", _CORRECT
    NON_EMPTY_GROUP = 68, _FATAL, "the group still has members", "Stop its members first."
    GROUP_ID_NOT_FOUND = 69, _FATAL, "there is no such group", "Check the group id."
    FETCH_SESSION_ID_NOT_FOUND = 70, _RETRY, "the broker has forgotten this fetch session", "Begin a new fetch session; clients do this by themselves."
    INVALID_FETCH_SESSION_EPOCH = 71, _RETRY, "the fetch session is out of step", "Begin a new fetch session; clients do this by themselves."
    LISTENER_NOT_FOUND = 72, _RETRY, "the partition's leader has no listener of this name", _REFRESH
    TOPIC_DELETION_DISABLED = 73, _FATAL, "this cluster does not allow topics to be deleted", _SETTINGS
    FENCED_LEADER_EPOCH = 74, _RETRY, "the request knows an older leader of the partition", _REFRESH
    UNKNOWN_LEADER_EPOCH = 75, _RETRY, "the request knows a newer leader than the broker does", _AGAIN
    UNSUPPORTED_COMPRESSION_TYPE = 76, _ABORT, "this side cannot handle the compression used", "Use gzip, snappy, lz4 or zstd, and zstd only with Produce 7 and Fetch 10 or newer."
    STALE_BROKER_EPOCH = 77, _FATAL, "the broker has restarted since", _INTERNAL
    OFFSET_NOT_AVAILABLE = 78, _RETRY, "a new leader does not know the end of the log yet", _AGAIN
    MEMBER_ID_REQUIRED = 79, _RETRY, "the member must join again with the id it was just given", "Join again with that id; clients do this by themselves."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, _RETRY, "the preferred leader is not available", _AGAIN
    GROUP_MAX_SIZE_REACHED = 81, _FATAL, "the group is full", "Stop a member, or raise `group.max.size`."
    FENCED_INSTANCE_ID = 82, _ABORT, "another member has taken this group instance id", "Give every running member its own `group_instance_id`."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, _RETRY, "no replica may become the leader", _AGAIN
    ELECTION_NOT_NEEDED = 84, _RETRY, "the partition has the right leader already", "Nothing to do."
    NO_REASSIGNMENT_IN_PROGRESS = 85, _FATAL, "no partition is being moved", "Nothing to do."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, _FATAL, "the group still reads this topic", "Stop its members first."
    INVALID_RECORD = 87, _ABORT, "the broker refused a record", "Correct the record; a compacted topic needs keys."
    UNSTABLE_OFFSET_COMMIT = 88, _RETRY, "an open transaction holds these offsets", _AGAIN
    THROTTLING_QUOTA_EXCEEDED = 89, _RETRY, "a quota is used up", "Wait as long as the answer says, then send it again."
    PRODUCER_FENCED = 90, _FATAL, "a newer producer with this transactional id has taken over", _RESTART
    RESOURCE_NOT_FOUND = 91, _FATAL, "there is no such resource", _CORRECT
    DUPLICATE_RESOURCE = 92, _FATAL, "the request names a resource twice", _CORRECT
    UNACCEPTABLE_CREDENTIAL = 93, _FATAL, "the credential does not meet the broker's rules", _CORRECT
    INCONSISTENT_VOTER_SET = 94, _FATAL, "sender and receiver disagree about who votes", _INTERNAL
    INVALID_UPDATE_VERSION = 95, _FATAL, "the version of the update is not valid", _CORRECT
    FEATURE_UPDATE_FAILED = 96, _FATAL, "the features could not be updated", _OPERATOR
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, _FATAL, "a forwarded request carries a principal that cannot be read", _INTERNAL
    SNAPSHOT_NOT_FOUND = 98, _FATAL, "there is no such snapshot", _INTERNAL
    POSITION_OUT_OF_RANGE = 99, _FATAL, "the position lies outside of the snapshot", _INTERNAL
    UNKNOWN_TOPIC_ID = 100, _RETRY, "this broker knows no topic of that id", _REFRESH
    DUPLICATE_BROKER_REGISTRATION = 101, _FATAL, "another broker uses this broker id", "Give every broker its own id."
    BROKER_ID_NOT_REGISTERED = 102, _FATAL, "no broker of that id is registered", _OPERATOR
    INCONSISTENT_TOPIC_ID = 103, _RETRY, "the topic's id does not match the log's: it was created anew", _REFRESH
    INCONSISTENT_CLUSTER_ID = 104, _FATAL, "the request is meant for another cluster", "Check the bootstrap servers."
    TRANSACTIONAL_ID_NOT_FOUND = 105, _FATAL, "the coordinator knows no such transactional id", "Check the id; idle ones expire."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, _RETRY, "the fetch session mixes topics with and without ids", "Begin a new fetch session; clients do this by themselves."
    INELIGIBLE_REPLICA = 107, _FATAL, "a replica may not be in the in-sync set", _INTERNAL
    NEW_LEADER_ELECTED = 108, _FATAL, "the partition got a new leader meanwhile", _INTERNAL
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, _FATAL, "the offset lies in tiered storage", _INTERNAL
    FENCED_MEMBER_EPOCH = 110, _ABORT, "the group has given this member up", _REJOIN
    UNRELEASED_INSTANCE_ID = 111, _FATAL, "another member still holds this group instance id", "Wait until it has left, or give this one its own id."
    UNSUPPORTED_ASSIGNOR = 112, _FATAL, "the group's coordinator has no such assignor", "Use one of the broker's assignors: uniform or range."
    STALE_MEMBER_EPOCH = 113, _ABORT, "the member's epoch is behind the group's", "Send the next heartbeat first, then try again with the new epoch."
    MISMATCHED_ENDPOINT_TYPE = 114, _FATAL, "the request went to the wrong kind of endpoint", "Send it to a broker, not to a controller, or the other way round."
    UNSUPPORTED_ENDPOINT_TYPE = 115, _FATAL, "this kind of endpoint is not supported", _UPGRADE
    UNKNOWN_CONTROLLER_ID = 116, _FATAL, "there is no controller of that id", _OPERATOR
    UNKNOWN_SUBSCRIPTION_ID = 117, _FATAL, "the telemetry subscription is unknown or outdated", "Ask for the current subscription."
    TELEMETRY_TOO_LARGE = 118, _FATAL, "the telemetry is larger than the broker accepts", "Send less at once."
    INVALID_REGISTRATION = 119, _FATAL, "the broker's registration is not valid", _OPERATOR
    TRANSACTION_ABORTABLE = 120, _ABORT, "the transaction cannot be committed, but the producer is fine", _ABORT_AND_RETRY
    INVALID_RECORD_STATE = 121, _FATAL, "the record cannot be acknowledged in its state", _CORRECT
    SHARE_SESSION_NOT_FOUND = 122, _RETRY, "the broker has forgotten this share session", _AGAIN
    INVALID_SHARE_SESSION_EPOCH = 123, _RETRY, "the share session is out of step", _AGAIN
    FENCED_STATE_EPOCH = 124, _FATAL, "the state of the share group is older than the coordinator's", _INTERNAL
    INVALID_VOTER_KEY = 125, _FATAL, "the voter's key is not the receiver's", _INTERNAL
    DUPLICATE_VOTER = 126, _FATAL, "the voter is in the set already", "Nothing to do."
    VOTER_NOT_FOUND = 127, _FATAL, "the voter is not in the set", "Nothing to do."
    INVALID_REGULAR_EXPRESSION = 128, _FATAL, "the regular expression is not valid", "Write it in the syntax of RE2/J."
    REBOOTSTRAP_REQUIRED = 129, _FATAL, "the client should forget what it knows and start from its bootstrap servers", "Connect to the bootstrap servers again."
    STREAMS_INVALID_TOPOLOGY = 130, _FATAL, "the topology is not valid", _CORRECT
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, _FATAL, "the epoch of the topology is not valid", _CORRECT
    STREAMS_TOPOLOGY_FENCED = 132, _FATAL, "the group runs a newer topology", _UPGRADE
    SHARE_SESSION_LIMIT_REACHED = 133, _RETRY, "the broker holds as many share sessions as it may", _AGAIN
    # fmt: on
