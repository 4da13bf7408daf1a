"""Every error code with its meaning and what to do, from `semel.wire.errors`."""

from generate.markdown import code, entry
from semel.wire.errors import ErrorCode, ErrorKind

_INTRODUCTION = """\
# Errors

Every error code of Apache Kafka {release} with its meaning and what to do about it. The client's
exceptions carry the code (`error.code`), its meaning and its advice in their text.

Each code is of one kind. The kind says what a transactional producer may do next, and which
exception of the Python client it becomes:

| kind | exception | what to do |
|---|---|---|
| retriable | `RetriableError` | make the same call again; nothing needs to be undone |
| abortable | `AbortableError` | abort the transaction and run it again; the producer is fine |
| fatal | `FatalError`, or `FencedError` for a fenced producer | close the client |

The text of an error, its cause and its cure: see [](../troubleshooting.md).

"""


def page() -> str:
    parts = [_INTRODUCTION.format(release="4.3.1")]
    for kind, title in (
        (ErrorKind.FATAL, "Fatal"), (ErrorKind.ABORTABLE, "Abortable"),
        (ErrorKind.RETRIABLE, "Retriable"), (ErrorKind.NONE, "No error"),
    ):  # fmt: skip
        parts.append(f"## {title}\n")
        parts += [_entry(error) for error in ErrorCode if error.kind is kind]
    return "\n".join(parts)


def _entry(error: ErrorCode) -> str:
    meaning = error.meaning[0].upper() + error.meaning[1:]
    advice = f"**What to do:** {error.advice}" if error.advice else ""
    return entry(error.name, f"{code(str(error.value))} {meaning}. {advice}".strip())
