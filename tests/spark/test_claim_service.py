"""Claims over a real socket: the token is the gate, and doom reaches everybody."""

import socket
import threading

import pytest

from semel.spark.sink.claim_service import ClaimClient, ClaimService, MustAbort
from semel.spark.sink.claims import Grant, TaskReport

A = ("t", 0)


@pytest.fixture
def dooms():
    return []


@pytest.fixture
def service(dooms):
    made = ClaimService("secret", "127.0.0.1", lambda targets: None, dooms.append)
    yield made
    made.stop()


def client(service, partition=0, attempt=100, token="secret"):
    return ClaimClient("127.0.0.1", service.port, token, partition, attempt)


def test_a_task_claims_gives_back_and_is_accounted_for(service):
    task = client(service)
    assert task.claim([], [(5, "t", [0])]) == [Grant(0, A, 0)]
    assert task.claim([(A, 5)], [(2, "t", [0])]) == [Grant(0, A, 5)]
    assert task.claim([(A, 2)], []) == []
    assert service.close([TaskReport(0, 100, 7)]) is None


def test_a_wrong_token_is_refused(service):
    with pytest.raises(MustAbort, match="token"):
        client(service, token="guessed")


def test_a_stranger_who_sends_anything_is_cut_off(service):
    for bytes_ in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\2[]", b"\0\0\0\x09not json!"):
        with socket.create_connection(("127.0.0.1", service.port)) as stranger:
            stranger.sendall(bytes_)
            assert stranger.recv(1) == b""
    assert service.close([]) is None


def test_a_waiting_task_is_answered_when_another_gives_back(service):
    first, second = client(service, 0, 100), client(service, 1, 101)
    first.claim([], [(5, "t", [0])])
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(second.claim([], [(1, "t", [0])])))
    waiting.start()
    first.claim([(A, 5)], [])
    waiting.join()
    assert answers == [[Grant(0, A, 5)]]


def test_a_task_lost_while_holding_dooms_the_others_too(service, dooms):
    first, second = client(service, 0, 100), client(service, 1, 101)
    first.claim([], [(5, "t", [0])])
    refused = []

    def wait():
        try:
            second.claim([], [(1, "t", [0])])
        except MustAbort as doomed:
            refused.append(str(doomed))

    waiting = threading.Thread(target=wait)
    waiting.start()
    first.close()
    waiting.join()
    assert len(refused) == 1
    assert "lost while" in refused[0]
    assert dooms == refused


def test_a_task_s_last_words_are_why_the_batch_is_aborted(service, dooms):
    task = client(service)
    task.claim([], [(5, "t", [0])])
    task.fail(ValueError("a row without a topic"))
    task.close()
    with pytest.raises(MustAbort, match="a row without a topic"):
        client(service, 1, 101).claim([], [(1, "t", [0])])
    assert dooms == ["task 100 was lost while it was writing to t-0: a row without a topic"]


def test_a_zombie_finds_nobody_once_the_batch_is_over():
    service = ClaimService("secret", "127.0.0.1", lambda targets: None, print)
    service.stop()
    with pytest.raises(MustAbort, match="gone"):
        client(service)


def test_a_partition_that_cannot_be_added_dooms_the_transaction(dooms):
    def refuse(targets):
        raise RuntimeError("the coordinator says no")

    service = ClaimService("secret", "127.0.0.1", refuse, dooms.append)
    with pytest.raises(MustAbort, match="coordinator says no"):
        client(service).claim([], [(1, "t", [0])])
    assert len(dooms) == 1
    service.stop()
