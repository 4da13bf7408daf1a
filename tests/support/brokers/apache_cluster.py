"""Several nodes of Apache Kafka as one cluster: leaders and coordinators that move.

with ApacheCluster() as kafka:
    kafka.nodes[1].kill()       # the others take over what it led
    kafka.nodes[1].start()
"""

from __future__ import annotations

from types import TracebackType

from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.ports import free_port

# A dead node is noticed after two seconds instead of nine.
_NOTICE_SOON = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "2000"}


class ApacheCluster:
    """Every node is broker and controller; of three nodes each keeps a copy of everything."""

    def __init__(self, count: int = 3, settings: dict[str, str] | None = None) -> None:
        self.nodes = {number: ApacheKafka(heap="384m") for number in range(1, count + 1)}
        controllers = {number: free_port() for number in self.nodes}
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in controllers.items())
        copies = str(min(count, 3))
        for number, node in self.nodes.items():
            node.cluster_id = self.nodes[1].cluster_id
            node.settings = {
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{node.bootstrap},"
                f"CONTROLLER://127.0.0.1:{controllers[number]}",
                "default.replication.factor": copies,
                "offsets.topic.replication.factor": copies,
                "transaction.state.log.replication.factor": copies,
                **_NOTICE_SOON,
                **(settings or {}),
            }

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    def __enter__(self) -> ApacheCluster:
        try:
            for node in self.nodes.values():
                node.format()
                node.launch()
            for node in self.nodes.values():
                node.wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes.values():
            node.__exit__(kind, error, trace)
