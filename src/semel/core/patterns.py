"""Regular expressions that clients send: RE2's, as in Kafka (KIP-848, KIP-1152).

RE2 matches in time that grows with the text only, so no pattern holds the broker up. Python's own
matcher goes back and tries again, and may take years.
"""

from typing import Protocol


class Pattern(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


class InvalidPattern(ValueError):
    """Not a regular expression, or one that RE2 does not know."""


def compile_pattern(text: str) -> Pattern:
    # Imported when first used: most brokers never see a pattern, and it takes 3 MB.
    import re2

    options = re2.Options()
    options.log_errors = False  # the client is told; nobody reads standard error
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as problem:
        raise InvalidPattern(_reason(problem)) from problem
    return compiled


def _reason(problem: Exception) -> str:
    said = problem.args[0] if problem.args else b""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
