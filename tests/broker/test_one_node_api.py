"""What tools ask of a cluster and a node without authentication has little to say to: answered as
Apache Kafka does (compared with it in `tests/interop/test_differential_admin.py`)."""

import pytest

from semel.core.access.authorizer import Authorizer
from semel.core.access.rule_book import RuleBook
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED, request_class
from semel.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from semel.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from semel.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from semel.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from semel.wire.messages.create_acls import CreateAclsRequest
from semel.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from semel.wire.messages.delete_acls import DeleteAclsRequest
from semel.wire.messages.describe_acls import DescribeAclsRequest
from semel.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from semel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from semel.wire.messages.elect_leaders import ElectLeadersRequest
from semel.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from semel.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from semel.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest
from semel.wire.messages.unregister_broker import UnregisterBrokerRequest


def name_of(result) -> str:
    return ErrorCode(result.error_code).name


# Leaders and replicas


@pytest.mark.parametrize("version", range(3))
async def test_a_lone_leader_needs_no_election(ask, broker, version):
    broker.catalog.create_topic("t", 2)
    Asked = ElectLeadersRequest.TopicPartitions
    wanted = [Asked(topic="t", partitions=[0, 1, 2]), Asked(topic="nobody", partitions=[0])]
    response = await ask(ElectLeadersRequest(topic_partitions=wanted), version)
    told = {
        (topic.topic, one.partition_id): name_of(one)
        for topic in response.replica_election_results
        for one in topic.partition_result
    }
    assert told == {
        ("t", 0): "ELECTION_NOT_NEEDED",
        ("t", 1): "ELECTION_NOT_NEEDED",
        ("t", 2): "UNKNOWN_TOPIC_OR_PARTITION",
        ("nobody", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }
    everywhere = await ask(ElectLeadersRequest(topic_partitions=None), version)
    assert [
        (topic.topic, topic.partition_result) for topic in everywhere.replica_election_results
    ] == [("t", [])]


@pytest.mark.parametrize(
    ("replicas", "partition", "error"),
    [
        ([1], 0, "NONE"),
        ([2], 0, "INVALID_REPLICA_ASSIGNMENT"),
        ([1, 1], 0, "INVALID_REPLICA_ASSIGNMENT"),
        ([], 0, "INVALID_REPLICA_ASSIGNMENT"),
        (None, 0, "NO_REASSIGNMENT_IN_PROGRESS"),
        ([1], 7, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
async def test_a_partition_stays_where_it_is(ask, broker, replicas, partition, error):
    broker.catalog.create_topic("t", 1)
    moved = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=partition, replicas=replicas
    )
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="t", partitions=[moved])
    response = await ask(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    [[told]] = [one.partitions for one in response.responses]
    assert (told.partition_index, name_of(told)) == (partition, error)
    assert (await ask(ListPartitionReassignmentsRequest(), 0)).topics == []


async def test_the_one_data_directory_has_every_replica(ask, broker):
    broker.catalog.create_topic("t", 1)

    async def moved(path, partition):
        topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="t", partitions=[partition])
        directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=[topic])
        response = await ask(AlterReplicaLogDirsRequest(dirs=[directory]), 2)
        [[told]] = [one.partitions for one in response.results]
        return name_of(told)

    assert await moved(str(broker.data), 0) == "NONE"
    assert await moved(str(broker.data), 5) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert await moved("/elsewhere", 0) == "LOG_DIR_NOT_FOUND"


async def test_a_broker_that_runs_is_not_forgotten(ask):
    assert name_of(await ask(UnregisterBrokerRequest(broker_id=1), 0)) == "INVALID_REQUEST"
    gone = await ask(UnregisterBrokerRequest(broker_id=2), 0)
    assert name_of(gone) == "BROKER_ID_NOT_REGISTERED"


@pytest.mark.parametrize("key", [76, 78, 79, 80, 81, 88, 91, 92])
async def test_groups_and_votes_that_there_are_not_are_refused(ask, key):
    for version in ADVERTISED[key]:
        request = request_class(key)()
        if key in (80, 81):
            request.cluster_id = None
        assert name_of(await ask(request, version)) == "UNSUPPORTED_VERSION"


# Who is who


@pytest.mark.parametrize("version", range(2))
async def test_who_shakes_hands_on_a_plaintext_listener_hears_that_nobody_is_asked(ask, version):
    response = await ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (name_of(response), response.mechanisms) == ("ILLEGAL_SASL_STATE", [])
    response = await ask(SaslAuthenticateRequest(auth_bytes=b"secret"), version)
    assert (name_of(response), response.auth_bytes) == ("ILLEGAL_SASL_STATE", b"")
    assert (await ask(DescribeClusterRequest(), 0)).error_code == 0  # the connection lives on


@pytest.mark.parametrize("version", range(1, 4))
async def test_rules_are_off_without_an_authorizer(ask, version):
    described = await ask(DescribeAclsRequest(), version)
    assert (name_of(described), described.resources) == ("SECURITY_DISABLED", [])
    rule = CreateAclsRequest.AclCreation(resource_type=2, resource_name="t")
    created = await ask(CreateAclsRequest(creations=[rule, rule]), version)
    assert [name_of(one) for one in created.results] == ["SECURITY_DISABLED"] * 2
    chosen = DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=2)
    deleted = await ask(DeleteAclsRequest(filters=[chosen]), version)
    assert [name_of(one) for one in deleted.filter_results] == ["SECURITY_DISABLED"]


@pytest.mark.parametrize(
    "request_",
    [
        CreateDelegationTokenRequest(),
        RenewDelegationTokenRequest(),
        ExpireDelegationTokenRequest(),
        DescribeDelegationTokenRequest(owners=None),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_tokens_are_for_who_proved_who_they_are(ask, request_):
    for version in request_.VERSIONS:
        response = await ask(request_, version)
        assert name_of(response) == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"


async def test_credentials_are_set_described_and_removed_each_user_on_their_own(ask):
    Name = DescribeUserScramCredentialsRequest.UserName
    everybody = await ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert (everybody.error_code, everybody.results) == (0, [])
    wanted = DescribeUserScramCredentialsRequest(users=[Name(name="a")])
    assert [name_of(one) for one in (await ask(wanted, 0)).results] == ["RESOURCE_NOT_FOUND"]
    Upsert = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    good = Upsert(name="a", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
    weak = Upsert(name="b", mechanism=1, iterations=1, salt=b"s", salted_password=b"p")
    response = await ask(AlterUserScramCredentialsRequest(upsertions=[good, weak]), 0)
    assert {one.user: name_of(one) for one in response.results} == {
        "a": "NONE",
        "b": "UNACCEPTABLE_CREDENTIAL",
    }


# How much


async def test_there_are_no_quotas_until_one_is_set(ask):
    described = await ask(DescribeClientQuotasRequest(), 1)
    assert (described.error_code, described.entries) == (0, [])

    async def altered(**change):
        entry = AlterClientQuotasRequest.EntryData(
            entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="a")],
            ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", **change)],
        )
        [told] = (await ask(AlterClientQuotasRequest(entries=[entry]), 1)).entries
        return name_of(told), told.error_message

    assert await altered(remove=True) == ("NONE", None)
    assert await altered(value=5.0) == ("NONE", None)
    assert (await altered(value=-5.0))[0] == "INVALID_REQUEST"


async def test_a_filter_of_quotas_that_makes_no_sense_is_refused(ask):
    component = DescribeClientQuotasRequest.ComponentData(entity_type="user", match_type=7)
    response = await ask(DescribeClientQuotasRequest(components=[component]), 1)
    assert (name_of(response), response.entries) == ("INVALID_REQUEST", None)


# Who may


@pytest.mark.parametrize(
    "request_",
    [
        ElectLeadersRequest(topic_partitions=None),
        AlterPartitionReassignmentsRequest(),
        ListPartitionReassignmentsRequest(),
        DescribeClientQuotasRequest(),
        DescribeUserScramCredentialsRequest(users=None),
        DescribeAclsRequest(),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_who_may_not_is_told_so(broker, connect, request_):
    broker.access = Authorizer(RuleBook())
    response = await (await connect(broker))(request_, request_.VERSIONS[-1])
    assert name_of(response) == "CLUSTER_AUTHORIZATION_FAILED"
