"""The broker's side of SCRAM, alone: against the example of RFC 7677, and against our client's."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.access.sasl import Refused
from semel.core.access.scram import (
    ScramCredential,
    ScramMechanism,
    ScramServer,
    credential_of,
    decoy,
)
from semel.net.client_sasl import Scram

SHA_256, SHA_512 = ScramMechanism


def credential(mechanism: ScramMechanism, password: str, salt: bytes = b"salt") -> ScramCredential:
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, 4096)
    return credential_of(mechanism, salted, salt, 4096)


def server(mechanism: ScramMechanism, users: dict[str, ScramCredential], nonce: str) -> ScramServer:
    return ScramServer(
        mechanism, nonce, users.get, lambda user: decoy(mechanism, user, b"secret", 4096)
    )


def test_the_example_of_rfc_7677() -> None:
    import base64

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    users = {"user": credential(SHA_256, "pencil", salt)}
    exchange = server(SHA_256, users, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert exchange.answer(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert exchange.user is None
    last = exchange.answer(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.user == "user"


NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=8
)


@given(mechanism=st.sampled_from([SHA_256, SHA_512]), user=NAMES, password=NAMES, wrong=NAMES)
def test_our_client_comes_in_with_the_right_password_alone(mechanism, user, password, wrong):
    users = {user: credential(mechanism, password)}
    for given_password in {password, wrong}:
        client = Scram(mechanism.digest, user, given_password)
        exchange = server(mechanism, users, "nonce")
        proof = client.next(exchange.answer(client.first()))
        if given_password == password:
            assert client.next(exchange.answer(proof)) is None
            assert exchange.user == user
        else:
            with pytest.raises(Refused):
                exchange.answer(proof)
            assert exchange.user is None


@given(message=st.binary(max_size=60), second=st.binary(max_size=60))
def test_any_bytes_are_answered_or_refused(message, second):
    exchange = server(SHA_256, {"a": credential(SHA_256, "b")}, "nonce")
    try:
        exchange.answer(message)
        exchange.answer(second)
    except Refused:
        pass
    assert exchange.user is None


def test_the_password_of_a_decoy_lets_nobody_in() -> None:
    """Even who could guess it: the user is not there."""
    made = decoy(SHA_256, "nobody", b"secret", 4096)
    assert made == decoy(SHA_256, "nobody", b"secret", 4096)
    assert made != decoy(SHA_256, "other", b"secret", 4096)
    assert made != decoy(SHA_256, "nobody", b"another", 4096)


def test_keys_are_not_shown() -> None:
    assert repr(credential(SHA_256, "x")) == "ScramCredential(iterations=4096)"
