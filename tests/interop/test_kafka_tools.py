"""Kafka's own command-line tools, unchanged, against Semel."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.support.brokers.apache_kafka import kafka_tool
from tests.support.brokers.process import SemelProcess

pytestmark = pytest.mark.interop

TOOLS = "org.apache.kafka.tools."
Tool = Callable[..., str]
MakeTopic = Callable[..., str]


@pytest.fixture
def tool(semel: SemelProcess) -> Tool:
    """Runs a tool against Semel: `tool("TopicCommand", "--list")`; what it printed."""

    def run(name: str, *arguments: str, stdin: str | None = None) -> str:
        main_class = name if name.startswith("kafka.") else TOOLS + name
        where = ("--bootstrap-server", semel.bootstrap)
        # Tools with subcommands want the address before (most) or after (ClusterTool) the name.
        arranged = (*arguments, *where) if name == "ClusterTool" else (*where, *arguments)
        done = kafka_tool(main_class, *arranged, stdin=stdin)
        return done.stdout + done.stderr

    return run


def fill(semel: SemelProcess, topic: str, count: int, **settings: str) -> Producer:
    producer = Producer({"bootstrap.servers": semel.bootstrap, **settings})
    for number in range(count):
        producer.produce(topic, f"value-{number}", key=str(number), partition=0)
    assert producer.flush(30) == 0
    return producer


def test_topic_command_lists_describes_alters_and_deletes(tool: Tool, topic: MakeTopic) -> None:
    name = topic(2)
    assert name in tool("TopicCommand", "--list").split()
    tool("TopicCommand", "--alter", "--topic", name, "--partitions", "5")
    described = tool("TopicCommand", "--describe", "--topic", name)
    assert "PartitionCount: 5" in described
    assert "Partition: 4" in described
    tool("TopicCommand", "--delete", "--topic", name)
    assert name not in tool("TopicCommand", "--list").split()


def test_config_command_alters_and_describes_a_topic(tool: Tool, topic: MakeTopic) -> None:
    name = topic()
    entity = ("--entity-type", "topics", "--entity-name", name)
    tool("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "retention.ms=12345")
    described = tool("kafka.admin.ConfigCommand", "--describe", *entity)
    assert "retention.ms=12345" in described
    tool("kafka.admin.ConfigCommand", "--alter", *entity, "--delete-config", "retention.ms")
    assert "12345" not in tool("kafka.admin.ConfigCommand", "--describe", *entity)


def test_config_command_describes_the_broker(tool: Tool) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    described = tool("kafka.admin.ConfigCommand", "--describe", "--all", *entity)
    assert "transaction.max.timeout.ms=900000" in described


def test_broker_api_versions_command_prints_the_table(tool: Tool) -> None:
    printed = tool("BrokerApiVersionsCommand")
    assert "EndTxn(26): 0 to 5" in printed
    assert "Fetch(1): 4 to 18" in printed


def test_feature_command_shows_transaction_version_two(tool: Tool) -> None:
    lines = tool("FeatureCommand", "describe").splitlines()
    [line] = [line for line in lines if "transaction.version" in line]
    assert "FinalizedVersionLevel: 2" in line


def test_cluster_tool_says_the_cluster_id(tool: Tool) -> None:
    assert "Cluster ID: " in tool("ClusterTool", "cluster-id")


def test_log_dirs_command_counts_bytes(semel: SemelProcess, tool: Tool, topic: MakeTopic) -> None:
    name = topic(1)
    fill(semel, name, 100)
    printed = tool("LogDirsCommand", "--describe", "--topic-list", name)
    [answer] = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    [partition] = answer["brokers"][0]["logDirs"][0]["partitions"]
    assert partition["partition"] == f"{name}-0"
    assert partition["size"] > 1000


def test_console_producer_and_consumer_talk_to_each_other(tool: Tool, topic: MakeTopic) -> None:
    name = topic()
    tool("ConsoleProducer", "--topic", name, stdin="one\ntwo\nthree\n")
    read = tool(
        "consumer.ConsoleConsumer", "--topic", name, "--from-beginning", "--max-messages", "3",
        "--timeout-ms", "20000", "--isolation-level", "read_committed",
    )  # fmt: skip
    assert {"one", "two", "three"} <= set(read.split())


def test_verifiable_producer_hears_every_acknowledgement(tool: Tool, topic: MakeTopic) -> None:
    printed = tool("VerifiableProducer", "--topic", topic(), "--max-messages", "500")
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    [summary] = [line for line in lines if line["name"] == "tool_data"]
    assert (summary["sent"], summary["acked"]) == (500, 500)


def test_the_performance_tools_run(semel: SemelProcess, tool: Tool, topic: MakeTopic) -> None:
    name = topic()
    printed = kafka_tool(
        TOOLS + "ProducerPerformance", "--topic", name, "--num-records", "5000", "--record-size",
        "100", "--throughput", "-1", "--producer-props", f"bootstrap.servers={semel.bootstrap}",
    ).stdout  # fmt: skip
    assert "5000 records sent" in printed
    printed = tool(
        "ConsumerPerformance", "--topic", name, "--num-records", "5000", "--timeout", "20000"
    )
    assert ", 5000," in printed.replace("5000.", "5000,")


def test_the_producer_performance_tool_runs_transactions(
    semel: SemelProcess, topic: MakeTopic
) -> None:
    printed = kafka_tool(
        TOOLS + "ProducerPerformance", "--topic", topic(), "--num-records", "2000", "--record-size",
        "100", "--throughput", "-1", "--producer-props", f"bootstrap.servers={semel.bootstrap}",
        "--transactional-id", f"perf-{uuid.uuid4()}", "--transaction-duration-ms", "50",
    ).stdout  # fmt: skip
    assert "2000 records sent" in printed


def test_offsets_and_delete_records(
    semel: SemelProcess, tool: Tool, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(1)
    fill(semel, name, 50)
    assert f"{name}:0:50" in tool("GetOffsetShell", "--topic", name)
    request = {"partitions": [{"topic": name, "partition": 0, "offset": 20}], "version": 1}
    (tmp_path / "delete.json").write_text(json.dumps(request))
    answer = tool("DeleteRecordsCommand", "--offset-json-file", str(tmp_path / "delete.json"))
    assert "low_watermark: 20" in answer
    assert f"{name}:0:20" in tool("GetOffsetShell", "--topic", name, "--time", "-2")


def test_consumer_group_command_sees_resets_and_deletes_a_group(
    semel: SemelProcess, tool: Tool, topic: MakeTopic
) -> None:
    name, group = topic(1), f"g-{uuid.uuid4()}"
    fill(semel, name, 30)
    consumer = Consumer(
        {
            "bootstrap.servers": semel.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([name])
    assert len(consumer.consume(30, timeout=30)) == 30
    consumer.commit(asynchronous=False)
    command = "consumer.group.ConsumerGroupCommand"
    assert group in tool("GroupsCommand", "--list")
    assert group in tool(command, "--list").split()
    [row] = [
        line.split()
        for line in tool(command, "--describe", "--group", group).splitlines()
        if line.startswith(group)
    ]
    assert row[1:6] == [name, "0", "30", "30", "0"]
    assert "Stable" in tool(command, "--describe", "--group", group, "--state")
    assert "rdkafka" in tool(command, "--describe", "--group", group, "--members")
    consumer.close()
    reset = ("--reset-offsets", "--topic", name, "--to-earliest", "--execute")
    tool(command, "--group", group, *reset)
    assert row[0] in tool(command, "--describe", "--group", group)
    assert "successful" in tool(command, "--delete", "--group", group)
    assert group not in tool(command, "--list").split()


def test_transactions_command_lists_describes_and_terminates(
    semel: SemelProcess, tool: Tool, topic: MakeTopic
) -> None:
    name, transactional_id = topic(1), f"id-{uuid.uuid4()}"
    producer = Producer(
        {"bootstrap.servers": semel.bootstrap, "transactional.id": transactional_id}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush(30)

    command = "TransactionsCommand"
    [row] = [
        line.split() for line in tool(command, "list").splitlines() if transactional_id in line
    ]
    assert row[0] == transactional_id
    assert row[3] == "Ongoing"
    described = tool(command, "describe", "--transactional-id", transactional_id)
    assert f"{name}-0" in described
    producers = tool(command, "describe-producers", "--topic", name, "--partition", "0")
    assert row[2] in producers
    assert "No partitions" not in tool(command, "find-hanging", "--broker-id", "1")
    tool(command, "forceTerminateTransaction", "--transactionalId", transactional_id)
    after = [
        line.split() for line in tool(command, "list").splitlines() if transactional_id in line
    ]
    assert after[0][3] != "Ongoing"


def test_dump_log_segments_reads_our_files(semel: SemelProcess, topic: MakeTopic) -> None:
    name = topic(1)
    fill(semel, name, 20, **{"compression.type": "zstd"})
    directory = semel.data / f"{name}-0"
    segment = directory / "00000000000000000000.log"
    printed = kafka_tool(
        TOOLS + "DumpLogSegments", "--files", str(segment), "--deep-iteration", "--print-data-log"
    ).stdout
    assert "isvalid: true" in printed
    assert "payload: value-19" in printed


def test_dump_log_segments_decodes_our_transaction_log(
    semel: SemelProcess, topic: MakeTopic
) -> None:
    name, transactional_id = topic(1), f"id-{uuid.uuid4()}"
    producer = Producer(
        {"bootstrap.servers": semel.bootstrap, "transactional.id": transactional_id}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"x", partition=0)
    producer.commit_transaction(30)
    logs = [
        str(path) for path in semel.data.glob("__transaction_state-*/*.log") if path.stat().st_size
    ]
    printed = kafka_tool(
        TOOLS + "DumpLogSegments", "--transaction-log-decoder", "--files", ",".join(logs)
    ).stdout
    ours = [line for line in printed.splitlines() if transactional_id in line]
    states = [json.loads(line.split("payload: ")[1])["data"]["transactionStatus"] for line in ours]
    assert states == [0, 1, 2, 4]  # Empty, Ongoing, PrepareCommit, CompleteCommit


# What a single node without authentication has little to say to


def test_leader_election_command_finds_every_leader_in_place(tool: Tool, topic: MakeTopic) -> None:
    name = topic(2)
    where = ("--topic", name, "--partition", "0")
    for kind in ("PREFERRED", "UNCLEAN"):
        printed = tool("LeaderElectionCommand", "--election-type", kind, *where)
        assert f"Valid replica already elected for partitions {name}-0" in printed
    assert (
        tool("LeaderElectionCommand", "--election-type", "PREFERRED", "--all-topic-partitions")
        == ""
    )


def test_reassign_partitions_command_plans_executes_throttles_and_verifies(
    semel: SemelProcess, tool: Tool, topic: MakeTopic, tmp_path: Path
) -> None:
    name, command = topic(2), "reassign.ReassignPartitionsCommand"
    assert "No partition reassignments found." in tool(command, "--list")
    wanted, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    wanted.write_text(json.dumps({"topics": [{"topic": name}], "version": 1}))
    printed = tool(
        command, "--generate", "--topics-to-move-json-file", str(wanted), "--broker-list", "1"
    )
    proposed = printed.strip().splitlines()[-1]
    assert len(json.loads(proposed)["partitions"]) == 2
    here = json.dumps(json.loads(proposed)).replace('"any"', f'"{semel.data}"')
    plan.write_text(here)  # a directory makes it ask for AlterReplicaLogDirs, too
    given = ("--reassignment-json-file", str(plan))
    printed = tool(command, "--execute", "--throttle", "1000000", *given)
    assert "Successfully started partition reassignments" in printed
    printed = tool(command, "--verify", *given)
    assert f"Reassignment of partition {name}-1 is completed." in printed
    assert "Clearing broker-level throttles on broker 1" in printed


def test_config_command_sets_and_removes_quotas_and_credentials_of_users(tool: Tool) -> None:
    command, user = "kafka.admin.ConfigCommand", ("--entity-type", "users", "--entity-name", "u")
    for added, told in (
        ("producer_byte_rate=1024", "producer_byte_rate=1024"),
        ("SCRAM-SHA-256=[password=secret]", "SCRAM-SHA-256=iterations=4096"),
    ):
        tool(command, "--alter", *user, "--add-config", added)
        assert told in tool(command, "--describe", *user)
        tool(command, "--alter", *user, "--delete-config", added.partition("=")[0])
        assert told not in tool(command, "--describe", *user)


def test_config_command_alters_a_broker_setting_that_changes_nothing_here(tool: Tool) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    name = "sasl.kerberos.min.time.before.relogin"
    tool("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", f"{name}=58000")
    assert f"{name}=58000" in tool("kafka.admin.ConfigCommand", "--describe", *entity)
    tool("kafka.admin.ConfigCommand", "--alter", *entity, "--delete-config", name)
    assert name not in tool("kafka.admin.ConfigCommand", "--describe", *entity)


def test_acl_command_hears_that_there_is_no_authorizer(semel: SemelProcess) -> None:
    where = ("--bootstrap-server", semel.bootstrap)
    done = kafka_tool(TOOLS + "AclCommand", *where, "--list", check=False)
    assert "SecurityDisabledException: No Authorizer is configured" in done.stdout


def test_delegation_token_command_hears_that_nobody_proved_who_they_are(
    semel: SemelProcess, tmp_path: Path
) -> None:
    (tmp_path / "empty.properties").touch()
    where = ("--bootstrap-server", semel.bootstrap)
    given = ("--command-config", str(tmp_path / "empty.properties"))
    for asked in (("--describe",), ("--create", "--max-life-time-period", "-1")):
        done = kafka_tool(TOOLS + "DelegationTokenCommand", *where, *given, *asked, check=False)
        assert "UnsupportedByAuthenticationException" in done.stderr
