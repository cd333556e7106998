"""The attributes of a target: their types and defaults, and the notation in words."""

import re
import shlex
from dataclasses import dataclass
from typing import Any, Literal

from .errors import TargetError

Type = Literal["int", "str", "words", "bool"]

_LARGEST = (1 << 53) - 1
"""RFC 8785, by which targets are keyed, has no larger integers."""


MOST_THREADS = 512
"""More threads of one kernel are never of use, and a mistyped number must not eat the machine."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: what its value may be, and the value when it is not given (None: none).

    type: ``words`` is a list of strings, separated by commas in words. choices: the only strings that are
    right, if any are named. minimum, maximum: of an integer.
    """

    name: str
    type: Type
    default: Any
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None

    def check(self, value: Any) -> Any:
        """The value in its type; words of the command line are converted. Raises TargetError, whose text
        begins with the attribute's name.
        """
        if value is None and self.default is None:
            return None
        match self.type:
            case "int":
                return self._int(value)
            case "words":
                return self._words(value)
            case "bool":
                return self._bool(value)
            case "str":
                return self._str(value)

    def _int(self, value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,99}", value):
            value = int(value)
        if type(value) is not int or value < self.minimum:
            raise self._wrong(value, f"an integer of at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise self._wrong(value, f"at most {self.maximum}")
        if value > _LARGEST:
            raise self._wrong(value, f"at most {_LARGEST}, which is all that a key can hold")
        return value

    def _str(self, value: Any) -> str:
        if not isinstance(value, str) or (self.choices and value not in self.choices):
            raise self._wrong(value, " or ".join(map(repr, self.choices)) if self.choices else "a string")
        return value

    def _words(self, value: Any) -> list[str]:
        if isinstance(value, str):
            return [word for word in value.split(",") if word]
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
            raise self._wrong(value, "a list of strings")
        return list(value)

    def _bool(self, value: Any) -> bool:
        if isinstance(value, str):
            value = {"true": True, "false": False, "1": True, "0": False}.get(value, value)
        if type(value) is not bool:
            raise self._wrong(value, "true or false")
        return value

    def _wrong(self, value: Any, right: str) -> TargetError:
        return TargetError(f"{self.name}={value!r}: must be {right}")


PROCESSOR = {
    a.name: a
    for a in (
        Attribute("mcpu", "str", "host"),
        Attribute("mattr", "str", ""),
        Attribute("features", "words", None),
        Attribute("num-threads", "int", 1, minimum=1, maximum=MOST_THREADS),
        Attribute("math", "str", "reassoc", choices=("strict", "reassoc")),
        Attribute("l1d", "int", None),
        Attribute("l2", "int", None),
        Attribute("l3", "int", None),
    )
}
"""The attributes of every kind that runs on processors. None: taken from the processor."""


def parse_words(text: str) -> dict[str, Any]:
    """A description in words, ``llvm -mcpu=x86-64-v3``, as a mapping whose values are strings. Words without
    a kind give none.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"target {text!r}: {error}") from error
    given: dict[str, Any] = {}
    if words and not words[0].startswith("-"):
        given["kind"] = words.pop(0)
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not equals:
            raise TargetError(f"target {text!r}: {word!r} is not of the form -name=value")
        if name in given:
            raise TargetError(f"target {text!r}: {name!r} is given twice")
        given[name] = value
    return given
