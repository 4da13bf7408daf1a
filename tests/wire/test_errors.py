"""The table of errors: complete, unambiguous, and at one with Apache Kafka on what to retry."""

from semel.wire.errors import ErrorCode, ErrorKind

# The codes whose exception in Kafka 4.3.1 is a RetriableException.
RETRIABLE_IN_KAFKA = {
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88,
    89, 100, 103, 106, 122, 123, 133,
}  # fmt: skip


def test_every_code_of_kafka_is_there_once() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


def test_retriable_means_what_it_means_in_kafka() -> None:
    # Kafka's clients treat "join again with the id you were given" by itself; here it is a retry.
    ours = {int(code) for code in ErrorCode if code.retriable} - {ErrorCode.MEMBER_ID_REQUIRED}
    assert ours == RETRIABLE_IN_KAFKA


def test_every_error_says_what_it_means_and_what_to_do() -> None:
    for code in ErrorCode:
        assert code.meaning, code.name
        assert code.advice or code is ErrorCode.NONE, code.name
        assert not code.meaning.endswith("."), code.name
        assert code is ErrorCode.NONE or code.advice.endswith("."), code.name


def test_the_errors_that_decide_a_transaction_have_their_kinds() -> None:
    assert ErrorCode.PRODUCER_FENCED.kind is ErrorKind.FATAL
    assert ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.kind is ErrorKind.FATAL
    assert ErrorCode.TRANSACTION_ABORTABLE.kind is ErrorKind.ABORTABLE
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED.kind is ErrorKind.ABORTABLE
    assert ErrorCode.CONCURRENT_TRANSACTIONS.kind is ErrorKind.RETRIABLE
    assert ErrorCode.NONE.kind is ErrorKind.NONE


def test_a_code_of_the_future_is_an_unknown_error() -> None:
    assert ErrorCode.of(30_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode.of(90) is ErrorCode.PRODUCER_FENCED
