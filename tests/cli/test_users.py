"""`semel users`, and every command over SASL_SSL; users survive kill -9."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.brokers.secure import MECHANISMS, PASSWORD, USER, SecureProcess


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureProcess]:
    with SecureProcess(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


def semel(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "semel.cli", *words]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def over_sasl_ssl(broker: SecureProcess, mechanism: str, secret: str) -> list[str]:
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(broker.authority.file),
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token"] = secret
    else:
        settings |= {"sasl.username": USER, "sasl.password": secret}
    words = ["-b", broker.bootstrap_of("SASL_SSL")]
    for name, value in settings.items():
        words += ["-X", f"{name}={value}"]
    return words


def test_a_user_is_added_logs_in_survives_kill_9_and_is_removed(
    secure: SecureProcess, tmp_path: Path
) -> None:
    where = ("-b", secure.bootstrap)
    done = semel("users", "set", USER, *where, stdin=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
    assert semel("users", "list", "--json", *where).stdout == (
        '{"user": "alice", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}\n'
    )
    secure.kill()
    secure.start()
    for mechanism in MECHANISMS:
        secret = secure.token() if mechanism == "OAUTHBEARER" else PASSWORD
        cluster = semel("topics", "list", *over_sasl_ssl(secure, mechanism, secret))
        assert cluster.returncode == 0, cluster.stderr
    wrong = semel("topics", "list", *over_sasl_ssl(secure, "SCRAM-SHA-256", "wrong"))
    assert wrong.returncode == 1
    assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in wrong.stderr
    assert PASSWORD not in secure.log() + done.stdout + done.stderr
    assert semel("users", "remove", USER, *where).returncode == 0
    assert semel("users", "list", "--json", *where).stdout == ""
    gone = semel("users", "remove", USER, *where)
    assert gone.returncode == 1
    assert "alice" in gone.stderr


def test_a_password_comes_from_a_file_or_standard_input_and_is_not_empty(
    secure: SecureProcess, tmp_path: Path
) -> None:
    where = ("-b", secure.bootstrap)
    file = tmp_path / "password.txt"
    file.write_text(f"{PASSWORD}\n")
    words = ("--mechanism", "SCRAM-SHA-512", "--password-file", str(file))
    assert semel("users", "set", "bob", *words, *where).returncode == 0
    listed = semel("users", "list", "--json", *where).stdout
    assert '{"user": "bob", "mechanisms": ["SCRAM-SHA-512"]}' in listed
    empty = semel("users", "set", "bob", *where, stdin="\n")
    assert empty.returncode == 2
    assert "the password is empty" in empty.stderr
    missing = semel("users", "set", "bob", "--password-file", str(tmp_path / "none"), *where)
    assert missing.returncode == 1
