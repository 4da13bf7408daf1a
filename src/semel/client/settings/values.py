"""From what users write to what a setting wants: words to numbers, or a sentence that says why not.

Values may be words, as a file of Java's properties or a command line has them.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from semel.errors import UsageError

T = TypeVar("T")

_TRUTHS = {"true": True, "false": False}


def made_of(cls: type[T], given: Mapping[str, Any]) -> T:
    """A value of a dataclass from keywords: names and types are checked, None leaves a default."""
    kinds = get_type_hints(cls)
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in kinds:
            raise UsageError(f"unknown option {name!r}{did_you_mean(name, kinds)}")
    try:
        return cls(**{name: typed(name, value, kinds[name]) for name, value in chosen.items()})
    except ValueError as error:
        raise UsageError(str(error)) from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest name there is, as the end of a sentence; nothing if none is near."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def typed(name: str, value: Any, wanted: Any) -> Any:
    """The value as the type that is wanted; a ValueError names the setting."""
    if get_origin(wanted) in (Union, UnionType):
        return _one_of_several(name, value, get_args(wanted))
    if get_origin(wanted) is Literal:
        return _chosen(name, value, get_args(wanted))
    convert = _CONVERSIONS.get(wanted)
    if convert is not None:
        return convert(name, value)
    wanted = get_origin(wanted) or wanted  # a Callable[...] is a Callable
    if not isinstance(value, wanted):
        raise ValueError(f"{name} should be {_article(wanted)}, not {_shown(name, value)}")
    return value


def _one_of_several(name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    """The first that fits. Words are for numbers first, so that "3" is one where it may be."""
    if value is None and NoneType in kinds:
        return None
    problem: ValueError | None = None
    for kind in kinds:
        if kind is NoneType:
            continue
        try:
            return typed(name, value, kind)
        except ValueError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _chosen(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """One of a few words, whatever the case of its letters; some tools write them in capitals."""
    word = str(value).lower()
    for each in allowed:
        if str(each).lower() == word:
            return each
    shown = ", ".join(str(each) for each in allowed)
    raise ValueError(f"{name} {value!r}: use one of {shown}")


def _bool(name: str, value: Any) -> bool:
    found = _TRUTHS.get(str(value).lower())
    if found is None:
        raise ValueError(f"{name} {_shown(name, value)}: should be true or false")
    return found


def _number(name: str, value: Any) -> float:
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number != number:
        raise ValueError(f"{name} should be a number, not {_shown(name, value)}")
    if number < 0:
        raise ValueError(f"{name} {value!r}: should not be negative")
    return number


def _integer(name: str, value: Any) -> int:
    number = _number(name, value)
    if not number.is_integer():
        raise ValueError(f"{name} should be a whole number, not {_shown(name, value)}")
    return int(number)


def _text(name: str, value: Any) -> str:
    # A number may be a name or a password: a command line cannot know.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{name} should be a text, not {_shown(name, value)}")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """From a list, or from one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple | set | frozenset):
        raise ValueError(f"{name} should be a list of texts, not {_shown(name, value)}")
    return tuple(text for part in parts if (text := _text(name, part).strip()))


_CONVERSIONS: Mapping[Any, Callable[[str, Any], Any]] = {
    bool: _bool,
    float: _number,
    int: _integer,
    str: _text,
    tuple[str, ...]: _texts,
}


def _article(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUS' else 'a'} {kind.__name__}"


def _shown(name: str, value: Any) -> str:
    """A secret's value is not for a log."""
    return type(value).__name__ if name.endswith(("password", "token")) else repr(value)
