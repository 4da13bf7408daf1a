"""`semel serve`: start a broker and keep it running until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
from pathlib import Path
from typing import Any

from semel.broker.addresses import LAST_PORT, Address, parse_listeners
from semel.broker.descriptors import raise_limit
from semel.broker.log_lines import FORMATS, LEVELS, write_lines
from semel.broker.server import Broker
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import from_flags, gather
from semel.broker.start_failures import CannotStart
from semel.cli.commands import CommandTable, Option, whole
from semel.cli.exits import CommandError, Exit, usage
from semel.net.watching import new_loop

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
#: Flags that stand for a setting.
_SETTINGS = {"data": "log.dir", "durability": "durability", "metrics_port": "metrics.port"}


def run(arguments: argparse.Namespace) -> int:
    write_lines(arguments.log_level, arguments.log_format)
    try:
        raise_limit()
        broker = Broker(settings=_settings(arguments))
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_serve(broker))
    except BadSetting as problem:
        raise usage(str(problem)) from None
    except CannotStart as problem:
        raise CommandError(str(problem)) from None
    return Exit.DONE


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is said with a flag of its own goes before the environment and the file. Said with
    `--set` as well it is a contradiction."""
    set_here = from_flags(arguments.set or ())
    given = gather(arguments.config) | set_here
    for flag, name in _SETTINGS.items():
        value = getattr(arguments, flag)
        if value is not None:
            _refuse_twice(f"--{flag.replace('_', '-')}", name, set_here)
            given[name] = value
    if arguments.host is not None:
        _refuse_twice("--host", "listeners", set_here)
    if arguments.port is not None:
        _refuse_twice("--port", "listeners", set_here)
    given["listeners"] = _listeners(given.get("listeners"), arguments.host, arguments.port)
    given.setdefault("log.dir", "data")
    return given


def _refuse_twice(flag: str, name: str, set_here: dict[str, Any]) -> None:
    if name in set_here:
        raise BadSetting(f"{flag} and --set {name}=… say the same: give one of the two")


def _listeners(known: str | None, host: str | None, port: int | None) -> str:
    """Where to listen: host and port take the place of those that are set elsewhere."""
    if known is not None and host is None and port is None:
        return known
    name, usual = "PLAINTEXT", Address(DEFAULT_HOST, DEFAULT_PORT)
    if known:
        name, usual = _only_listener(known)
    address = Address(
        usual.host if host is None else host.strip("[]"), usual.port if port is None else port
    )
    return f"{name}://{address}"


def _only_listener(known: str) -> tuple[str, Address]:
    """The name and the address of the listener that is set elsewhere."""
    name = known.partition("://")[0].strip().upper()
    if "," in known:
        raise BadSetting(
            "--host and --port are for one listener: leave them out, `listeners` has several"
        )
    (found,) = parse_listeners("listeners", known, {name: "PLAINTEXT"})
    return name, found.address


async def _serve(broker: Broker) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with broker:
        print(start_message(broker), flush=True)
        gc.freeze()  # what is loaded now stays: the collector need not look at it again
        await stopping.wait()
        print("Stopping: answering what was asked, then closing.", flush=True)


def start_message(broker: Broker) -> str:
    return (
        f"Semel is listening on {_addresses(broker)}; its data is in {broker.data}.\n"
        f"{_whereabouts(broker)}"
        f"{_first_steps(broker)}"
        "Stop it with Ctrl-C."
    )


def _first_steps(broker: Broker) -> str:
    """For those who may come in as they are."""
    for name, listener in broker.listeners.all.items():
        if listener.place.protocol == "PLAINTEXT":
            address = broker.bootstrap_servers_of(name)
            return (
                "Any Kafka client can talk to it. To try, in another terminal:\n"
                "\n"
                f"    echo hello | semel produce -b {address} greetings\n"
                f"    semel consume -b {address} -e greetings\n"
                "\n"
            )
    return "Any Kafka client can talk to it, with its settings for TLS or SASL (-X of `semel`).\n"


def _addresses(broker: Broker) -> str:
    listeners = broker.listeners.all.values()
    if len(listeners) == 1:
        return str(broker.listeners.first.address)
    return ", ".join(f"{one.address} ({one.place.name})" for one in listeners)


def _whereabouts(broker: Broker) -> str:
    """What cannot be seen from the address alone."""
    lines = []
    if broker.settings["advertised.listeners"]:
        lines.append(f"Clients are told to connect to {broker.bootstrap_servers}.")
    elif broker.listen_address.is_wildcard and len(broker.listeners.all) == 1:
        lines.append(
            "That is every address of this machine: clients elsewhere use its name, those here "
            f"{broker.bootstrap_servers}."
        )
    open_to_all = [
        one
        for one in broker.listeners.all.values()
        if not one.asks_who and not one.place.address.is_loopback
    ]
    if open_to_all:
        safe = all(one.place.has_tls for one in open_to_all)
        lines.append(
            "Whoever reaches it may read and write: it asks for no password"
            + ("." if safe else ", and nothing is encrypted.")
        )
    if broker.settings["metrics.port"] >= 0:
        metrics = Address(broker.listen_address.host, broker.metrics.port)
        lines.append(f"Metrics for Prometheus are at http://{metrics}/metrics.")
    return "".join(f"{line}\n" for line in lines)


COMMAND = CommandTable(
    run=run,
    options=(
        Option("--data", "where everything is kept (default: ./data)", value="DIR"),
        Option("--host", f"the address to listen on; 0.0.0.0 is every one that this machine has "
               f"(default: {DEFAULT_HOST})", value="HOST"),
        Option("--port", f"the port to listen on; 0 takes a free one (default: {DEFAULT_PORT})",
               value="PORT", parse=whole(0, LAST_PORT)),
        Option("--config", "a TOML file of settings", value="FILE", parse=Path),
        Option("--set", "a setting by Kafka's name, as log.retention.ms=3600000; may be repeated",
               value="NAME=VALUE", repeated=True),
        Option("--durability", "when a write counts as done: handed to the operating system (os, "
               "as in Kafka; survives a killed process) or on the device (fsync; survives a power "
               "cut)", value="WHEN", choices=("os", "fsync")),
        Option("--metrics-port", "serve metrics for Prometheus on this port; 0 takes a free one",
               value="PORT", parse=whole(0, LAST_PORT)),
        Option("--log-level", "what is worth a line on standard error", value="LEVEL",
               choices=LEVELS, default="warning"),
        Option("--log-format", "how such a line looks", value="FORMAT", choices=FORMATS,
               default="logfmt"),
    ),
    notes="Settings have Kafka's names. A flag goes before the environment, and that before the "
    "file:\nSEMEL_BROKER_LOG_RETENTION_MS in the environment is log.retention.ms. A name that is "
    "no setting\nis an error.",
    examples={
        "semel serve": "on this machine only, data in ./data",
        "semel serve --data /var/lib/semel --host 0.0.0.0": "for clients elsewhere",
        "semel serve --port 0 --set num.partitions=6": "a free port; topics of six partitions",
    },
)  # fmt: skip
