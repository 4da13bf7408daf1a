"""What keeps a broker from starting, told in a sentence: what happened, why, what to do."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from semel.broker.addresses import Address
from semel.store.interface import StorageError


class CannotStart(Exception):
    """The broker does not start; nothing of it is left running."""


class CannotListen(CannotStart, OSError):
    """The address cannot be listened on."""


class CannotUseDirectory(CannotStart, OSError):
    """The data directory, or a file in it, cannot be used."""


_LISTENING = {
    errno.EADDRINUSE: (
        "address already in use: stop the program that listens there, or choose another port "
        "(port 0 takes a free one)"
    ),
    errno.EADDRNOTAVAIL: (
        "this machine has no such address: give one of its own, 127.0.0.1 for clients on this "
        "machine only, or 0.0.0.0 for all"
    ),
    errno.EACCES: "this user may not listen there: choose a port from 1024 on",
}
_NOT_A_DIRECTORY = "there is a file where a directory should be: give another directory"
_NOT_ALLOWED = "this user may not write there: change its owner, or give another directory"
_FULL = "its disk is full: make room on it, or give a directory on another disk"
_DIRECTORY = {
    errno.EEXIST: _NOT_A_DIRECTORY,
    errno.ENOTDIR: _NOT_A_DIRECTORY,
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: "its disk is read-only: give a directory on another disk",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
}


@contextmanager
def listening_on(address: Address) -> Iterator[None]:
    """Tells a failure in this block as one to listen on that address."""
    try:
        yield
    except socket.gaierror:
        raise CannotListen(
            f"Cannot listen on {address}: the name {address.host!r} is not known here. Give a name "
            "or an address of this machine."
        ) from None
    except OSError as problem:
        why = _LISTENING.get(problem.errno or 0) or problem.strerror or str(problem)
        raise _numbered(CannotListen(f"Cannot listen on {address}: {why}."), problem) from None


@contextmanager
def using_directory(path: os.PathLike[str]) -> Iterator[None]:
    """Tells a failure of the disk in this block as one of the data directory."""
    try:
        yield
    except CannotStart:
        raise
    except StorageError as problem:
        raise CannotUseDirectory(f"Cannot use the data directory {path}: {problem}.") from problem
    except OSError as problem:
        why = _DIRECTORY.get(problem.errno or 0) or problem.strerror or str(problem)
        file = f" (at {problem.filename})" if problem.filename else ""
        told = CannotUseDirectory(f"Cannot use the data directory {path}: {why}{file}.")
        raise _numbered(told, problem) from problem


def _numbered(told: OSError, problem: OSError) -> OSError:
    told.errno = problem.errno
    return told
