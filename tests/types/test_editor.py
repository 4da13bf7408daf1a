"""What an editor shows: completion, hover and signatures, asked of a real language server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.markdown import ROOT

PROGRAM = """\
from semel.client.blocking import Consumer, Producer

with Producer("localhost:9092", linger_ms=5) as producer:
    producer.send("orders", b"v")
    producer.metrics()["records_sent"]

with Consumer("localhost:9092", value_deserializer=bytes.decode) as consumer:
    for record in consumer:
        print(record.value)

Consumer("localhost:9092", isol)
"""


class Editor:
    """A client of the language server protocol with one file open."""

    def __init__(self, directory: Path) -> None:
        settings = {"extraPaths": [str(ROOT / "src")]}
        (directory / "pyrightconfig.json").write_text(json.dumps(settings))
        self._uri = (directory / "program.py").as_uri()
        server = Path(sys.executable).with_name("basedpyright-langserver")
        self._server = subprocess.Popen(
            [server, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._last_id = 0
        folder = {"uri": directory.as_uri(), "name": "user"}
        self.ask("initialize", {
            "processId": None, "rootUri": folder["uri"], "workspaceFolders": [folder],
            "capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown"]}}},
        })  # fmt: skip
        self._tell("initialized", {})
        document = {"uri": self._uri, "languageId": "python", "version": 1, "text": PROGRAM}
        self._tell("textDocument/didOpen", {"textDocument": document})

    def close(self) -> None:
        self._server.kill()
        self._server.communicate()

    def hover(self, text: str) -> str:
        found = self.ask("textDocument/hover", self._at(text))
        assert found is not None, f"nothing is known of {text}"
        words: str = found["contents"]["value"]
        return words

    def completions(self, text: str) -> set[str]:
        found = self.ask("textDocument/completion", self._at(text, behind=True))
        items = found["items"] if isinstance(found, dict) else found
        return {item["label"] for item in items}

    def ask(self, method: str, parameters: dict[str, Any]) -> Any:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self._last_id and "method" not in message:
                return message["result"]
            if "id" in message:  # the server asks for the editor's settings: there are none
                items = message.get("params", {}).get("items", ())
                self._send({"id": message["id"], "result": [None for _ in items]})

    def _at(self, text: str, behind: bool = False) -> dict[str, Any]:
        before = PROGRAM[: PROGRAM.index(text) + (len(text) if behind else len(text) - 1)]
        place = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
        return {"textDocument": {"uri": self._uri}, "position": place}

    def _tell(self, method: str, parameters: dict[str, Any]) -> None:
        self._send({"method": method, "params": parameters})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        size = 0
        while line := self._server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        assert size, "the language server has ended"
        message: dict[str, Any] = json.loads(self._server.stdout.read(size))
        return message


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    made = Editor(tmp_path_factory.mktemp("user"))
    yield made
    made.close()


pytestmark = pytest.mark.slow


def test_hovering_over_a_call_shows_its_arguments_and_its_text(editor: Editor) -> None:
    shown = editor.hover("producer.send")
    assert "partition: int | None = None" in shown
    assert "Delivery[RecordMetadata]" in shown
    assert "Buffers a record" in shown


def test_hovering_over_a_setting_shows_what_it_means_and_its_default(editor: Editor) -> None:
    shown = editor.hover("linger_ms")
    assert "How long a batch waits for more records" in shown
    assert "Default: `5.0`" in shown


def test_settings_are_completed(editor: Editor) -> None:
    assert "isolation_level=" in editor.completions('Consumer("localhost:9092", isol')


def test_the_type_of_a_deserialized_value_is_known(editor: Editor) -> None:
    assert "str | None" in editor.hover("record.value")
