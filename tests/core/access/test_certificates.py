"""Until when a certificate is good, read from its bytes."""

import datetime
import ssl
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.certificates import Authority

from semel.core.access.certificates import NotACertificate, not_after_ms


@pytest.mark.parametrize("days", [-1, 30, 365 * 40])  # UTCTime, and GeneralizedTime from 2050 on
def test_the_end_of_a_certificate(tmp_path, days: int) -> None:
    path = Authority(tmp_path).issue("CN=a", days=days)
    text = path.read_text()
    der = ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE") :])
    wanted = time.time() + datetime.timedelta(days=days).total_seconds()
    assert abs(not_after_ms(der) / 1000 - wanted) < 60


@given(st.binary(max_size=100))
def test_any_bytes_are_a_certificate_or_not(data: bytes) -> None:
    with pytest.raises(NotACertificate):
        not_after_ms(data)
