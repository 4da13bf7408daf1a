"""`semel serve`: start a broker and keep it running until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from pathlib import Path
from typing import Any

from semel.broker.addresses import Address
from semel.broker.catalog.journal import DamagedJournal
from semel.broker.descriptors import raise_limit
from semel.broker.directory import DirectoryInUse
from semel.broker.log_lines import FORMATS, LEVELS, write_lines
from semel.broker.server import Broker
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import gather
from semel.net.watching import new_loop

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="where everything is kept (default: ./data)")
    parser.add_argument("--host", help=f"address to listen on (default: {DEFAULT_HOST})")
    parser.add_argument(
        "--port", type=int, help=f"port to listen on, 0 for a free one (default: {DEFAULT_PORT})"
    )
    parser.add_argument("--config", metavar="FILE", type=Path, help="settings as a TOML file")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="one setting by Kafka's name, such as log.retention.ms=1000; may be repeated",
    )
    parser.add_argument("--durability", choices=("os", "fsync"), help="when a write counts as done")
    parser.add_argument(
        "--metrics-port", type=int, help="serve metrics for Prometheus on this port"
    )
    parser.add_argument("--log-level", choices=LEVELS, default="warning")
    parser.add_argument("--log-format", choices=FORMATS, default="logfmt")


def run(arguments: argparse.Namespace) -> int:
    write_lines(arguments.log_level, arguments.log_format)
    try:
        raise_limit()
        broker = Broker(settings=_settings(arguments))
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_serve(broker))
    except (BadSetting, DirectoryInUse, DamagedJournal) as problem:
        print(f"semel: {problem}", file=sys.stderr)
        return 2
    except OSError as problem:
        print(f"semel: cannot start: {problem}", file=sys.stderr)
        return 1
    return 0


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    given = gather(arguments.config, flags=arguments.set)
    if arguments.data is not None:
        given["log.dir"] = arguments.data
    if arguments.durability is not None:
        given["durability"] = arguments.durability
    if arguments.metrics_port is not None:
        given["metrics.port"] = arguments.metrics_port
    if arguments.host is not None or arguments.port is not None or "listeners" not in given:
        host = DEFAULT_HOST if arguments.host is None else arguments.host
        port = DEFAULT_PORT if arguments.port is None else arguments.port
        given["listeners"] = f"PLAINTEXT://{Address(host, port)}"
    given.setdefault("log.dir", "data")
    return given


async def _serve(broker: Broker) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with broker:
        _print_address(broker)
        gc.freeze()  # what is loaded now stays: the collector need not look at it again
        await stopping.wait()
        print("Stopping: answering what was asked, then closing.", flush=True)


def _print_address(broker: Broker) -> None:
    address = broker.bootstrap_servers
    print(
        f"Semel is listening on {address}; its data is in {broker.data}.\n"
        "Any Kafka client can talk to it. To try, after `pip install confluent-kafka`:\n"
        "\n"
        '    python -c "from confluent_kafka.admin import AdminClient, NewTopic\n'
        f"admin = AdminClient({{'bootstrap.servers': '{address}'}})\n"
        "admin.create_topics([NewTopic('greetings', 3)])['greetings'].result()\n"
        'print(sorted(admin.list_topics(timeout=5).topics))"\n'
        "\n"
        "Stop it with Ctrl-C.",
        flush=True,
    )
