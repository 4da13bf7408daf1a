"""Regular expressions that clients send: RE2's syntax, as far as Python's agrees with it.

Kafka compiles them with RE2, whose matching time grows with the text only. Python's matcher goes
back and tries again, so what RE2 does not know is refused here, and what could run away with it.
"""

import re

# Look-around, back-references, possessive and atomic repetition, counts over 1,000.
_NOT_IN_RE2 = re.compile(r"\(\?[=!<>(]|\\[1-9]|\(\?P[=>]|[*+?}]\+|\{(?:\d+,)?(?!1000\b)\d{4,}")
_NESTED_QUANTIFIER = re.compile(r"[*+}]\??\)+[*+{]")
# A quantifier's sign that stands for itself: escaped, or in a set of characters.
_LITERAL = re.compile(r"\\[^1-9]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


class InvalidPattern(ValueError):
    """Not a regular expression, or one that this broker does not run."""


def compile_pattern(text: str) -> re.Pattern[str]:
    structure = _LITERAL.sub("x", text)
    if _NOT_IN_RE2.search(structure):
        raise InvalidPattern("RE2 does not know this construct")
    if _NESTED_QUANTIFIER.search(structure):
        raise InvalidPattern("repetitions inside of repetitions are not supported")
    try:
        return re.compile(text.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidPattern(str(error)) from error
