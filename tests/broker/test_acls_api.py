"""CreateAcls, DescribeAcls and DeleteAcls, and that rules are obeyed."""

import logging

import pytest

from semel.broker.catalog.catalog import Catalog
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import Settings
from semel.core.access.rules import Rule
from semel.wire.acls import ALLOW, DENY, LITERAL, PREFIXED
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_acls import CreateAclsRequest
from semel.wire.messages.delete_acls import DeleteAclsRequest
from semel.wire.messages.describe_acls import DescribeAclsRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.list_groups import ListGroupsRequest
from semel.wire.messages.metadata import MetadataRequest

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ME = "User:ANONYMOUS"
TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY = 1


def rule(operation, kind="CLUSTER", name="kafka-cluster", pattern=LITERAL, permission=ALLOW):
    return Rule(kind, name, pattern, ME, "*", operation, permission)


def creation(**fields):
    usual = {
        "resource_type": TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return CreateAclsRequest.AclCreation(**usual | fields)


def everything(**fields):
    usual = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return usual | fields


def deletion(**fields):
    return DeleteAclsRequest.DeleteAclsFilter(**everything(**fields))


@pytest.fixture
async def broker(start_broker):
    return await start_broker(**{"authorizer.class.name": STANDARD})


@pytest.fixture
def administrator(broker):
    broker.catalog.change_rules(added=[rule("ALTER"), rule("CREATE")])


async def created(ask, *creations, version=3):
    response = await ask(CreateAclsRequest(creations=list(creations)), version)
    return [(ErrorCode(one.error_code).name, one.error_message) for one in response.results]


async def described(ask, version=3, **fields):
    response = await ask(DescribeAclsRequest(**everything(**fields)), version)
    assert response.error_code == 0
    return {
        (resource.resource_name, resource.pattern_type, acl.principal, acl.operation)
        for resource in response.resources
        for acl in resource.acls
    }


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_rules_are_made_seen_and_removed(ask, administrator, version):
    read, write = creation(), creation(operation=4, resource_name="o", resource_pattern_type=4)
    assert await created(ask, read, write, version=version) == [("NONE", None)] * 2
    mine = {"version": version, "principal_filter": "User:alice"}
    assert await described(ask, **mine) == {
        ("orders", 3, "User:alice", 3),
        ("o", 4, "User:alice", 4),
    }
    wanted = deletion(resource_name_filter="orders", pattern_type_filter=2)
    response = await ask(DeleteAclsRequest(filters=[wanted, wanted]), version)
    assert [len(one.matching_acls) for one in response.filter_results] == [2, 2]
    assert await described(ask, **mine) == set()


async def test_a_rule_that_is_there_is_made_once(ask, broker, administrator):
    before = len(broker.catalog.rules)
    assert await created(ask, creation(), creation()) == [("NONE", None)] * 2
    assert await created(ask, creation()) == [("NONE", None)]
    assert len(broker.catalog.rules) == before + 1


@pytest.mark.parametrize(("fields", "words"), [
    ({"resource_type": CLUSTER},
     "The only valid name for the CLUSTER resource is kafka-cluster"),
    ({"resource_name": ""}, "Invalid empty resource name"),
    ({"resource_type": ANY}, "Invalid resourceType ANY"),
    ({"resource_pattern_type": ANY}, "Invalid patternType ANY"),
    ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
    ({"operation": ANY}, "Invalid operation ANY"),
    ({"permission_type": ANY}, "Invalid permissionType ANY"),
    ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
])  # fmt: skip
async def test_what_is_no_rule_is_refused_and_the_others_are_made(
    ask, administrator, fields, words
):
    results = await created(ask, creation(**fields), creation())
    assert results == [("INVALID_REQUEST", words), ("NONE", None)]


async def test_a_filter_of_an_unknown_kind_removes_nothing(ask, broker, administrator):
    before = list(broker.catalog.rules)
    response = await ask(DeleteAclsRequest(filters=[deletion(operation=99)]), 3)
    assert ErrorCode(response.filter_results[0].error_code).name == "INVALID_REQUEST"
    assert list(broker.catalog.rules) == before


async def test_who_may_not_alter_the_cluster_makes_no_rules(ask, broker):
    [(name, _)] = await created(ask, creation())
    assert name == "CLUSTER_AUTHORIZATION_FAILED"
    assert len(broker.catalog.rules) == 0


async def test_rules_outlive_the_process(ask, broker, administrator, tmp_path):
    await created(ask, creation(), creation(resource_pattern_type=4, permission_type=2))
    kept = list(broker.catalog.rules)
    again = Catalog(tmp_path / "data", Settings())
    again._replay(again._journal.open()[0])  # what a killed process leaves behind
    again.close()
    assert list(again.rules) == kept
    again.rules.remove(kept[0])
    copy = Catalog(tmp_path / "data", Settings())
    copy._replay(list(again._snapshot()))
    assert list(copy.rules) == kept[1:]


async def test_a_rule_counts_from_the_next_request_of_an_open_connection(ask, broker):
    broker.catalog.create_topic("orders", 1)
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])

    async def seen():
        [topic] = (await ask(request, 12)).topics
        return ErrorCode(topic.error_code).name

    assert await seen() == "TOPIC_AUTHORIZATION_FAILED"
    read = rule("READ", "TOPIC", "ord", PREFIXED)
    broker.catalog.change_rules(added=[read])
    assert await seen() == "NONE"
    deny = rule("DESCRIBE", "TOPIC", "orders", permission=DENY)
    broker.catalog.change_rules(added=[deny])
    assert await seen() == "TOPIC_AUTHORIZATION_FAILED"
    broker.catalog.change_rules(removed=[deny])
    assert await seen() == "NONE"
    broker.catalog.change_rules(removed=[read])
    assert await seen() == "TOPIC_AUTHORIZATION_FAILED"


async def test_an_empty_transactional_id_is_asked_about_first(ask, broker):
    request = EndTxnRequest(transactional_id="")
    denied = await ask(request, 4)
    assert ErrorCode(denied.error_code).name == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    broker.catalog.change_rules(added=[rule("WRITE", "TRANSACTIONAL_ID", "*")])
    assert ErrorCode((await ask(request, 4)).error_code).name == "INVALID_REQUEST"


async def test_a_denial_leaves_a_line_and_a_filter_none(ask, broker, caplog):
    with caplog.at_level(logging.WARNING, "semel.audit"):
        await ask(ListGroupsRequest(), 4)
        await ask(EndTxnRequest(transactional_id="x"), 4)
        await ask(EndTxnRequest(transactional_id="x"), 4)
    [line] = [record for record in caplog.records if record.name == "semel.audit"]
    told = (line.principal, line.host, line.operation, line.resource)
    assert told == (ME, "127.0.0.1", "WRITE", "TRANSACTIONAL_ID:x")


async def test_a_super_user_may_do_everything(start_broker, connect):
    broker = await start_broker(
        **{"authorizer.class.name": STANDARD, "super.users": f"User:boss;{ME}"}
    )
    assert await created(await connect(broker), creation()) == [("NONE", None)]


async def test_everybody_may_where_no_rule_is_if_the_setting_says_so(start_broker, connect):
    broker = await start_broker(
        **{"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
    )
    ask = await connect(broker)
    assert await created(ask, creation(resource_type=CLUSTER, resource_name="kafka-cluster")) == [
        ("NONE", None)
    ]
    assert (await created(ask, creation()))[0][0] == "CLUSTER_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(("name", "value"), [
    ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
    ("super.users", "alice"),
    ("super.users", "User:a;:b"),
])  # fmt: skip
def test_settings_of_access_that_make_no_sense_are_refused(name, value):
    with pytest.raises(BadSetting, match=name):
        Settings({name: value})
