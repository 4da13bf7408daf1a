"""What a session gives its queries: tasks that are tried again, a source that they may share."""

import pytest

from semel.spark import register
from semel.spark.sessions.session import with_retries


@pytest.mark.parametrize(
    ("master", "used"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_session_tries_a_task_as_often_as_a_cluster_does(master, used):
    assert with_retries(master) == used


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_query_may_start_while_a_task_of_another_one_is_serialised(spark):
    """The first puts names into the environment of the source that the second is reading."""
    register(spark)
    sources = spark._jsparkSession.sessionState().dataSourceManager()
    environment = sources.lookupDataSource("semel").dataSourceCls().envVars()
    names = environment.entrySet().iterator()
    environment.put("A_NAME_OF_THE_TEST", "1")
    try:
        while names.hasNext():
            names.next()
    finally:
        environment.remove("A_NAME_OF_THE_TEST")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_two_queries_share_one_source_from_their_start(kafka, spark):
    topic, counts = kafka.topic(), {"first": [], "second": []}
    producer = kafka.producer()
    for number in range(10):
        producer.produce(topic, str(number))
    producer.flush()
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic}
    rows = spark.readStream.format("semel").options(**options).load()
    queries = []
    for found in counts.values():
        writer = rows.writeStream.foreachBatch(lambda b, n, found=found: found.append(b.count()))
        queries.append(writer.trigger(availableNow=True).start())
    for query in queries:
        query.awaitTermination()
    assert counts == {"first": [10], "second": [10]}
