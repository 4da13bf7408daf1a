"""Ports that are free just now."""

import random
import socket

# Below those that the system gives to outgoing connections (32768 and up on Linux): a broker that
# takes seconds to start would find its port taken by somebody's connection.
_PORTS = range(20_000, 32_000)


def free_port() -> int:
    dice = random.SystemRandom()
    while True:
        port = dice.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
