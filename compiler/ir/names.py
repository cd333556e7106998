"""The names that a program is printed under: Python identifiers, each with one meaning where it stands."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Container

#: Of a name that is read, in characters: te allows 100, and what is made of its tensors appends to them.
MAX_NAME = 1000
#: What a name must be, for messages.
NAME = f"a name must be an identifier of at most {MAX_NAME} characters"
#: Identifiers that a printed value reads as a number.
_NUMBERS = frozenset({"inf", "nan"})
_NO_LETTER = re.compile(r"\W")


def is_name(x: object) -> bool:
    """Whether `x` may be the name of a thing in a program that is read."""
    return isinstance(x, str) and x.isidentifier() and len(x) <= MAX_NAME


def spoken(name: str) -> str:
    """`name` as an identifier that Python reads back as it stands."""
    text = _NO_LETTER.sub("_", unicodedata.normalize("NFKC", name))
    if not text.isidentifier():
        text = f"_{text}"
    return f"{text}_" if keyword.iskeyword(text) or text in _NUMBERS else text


def free(name: str, taken: Container[str]) -> str:
    """`name` as an identifier, with a number behind it where that one is taken."""
    wanted = text = spoken(name)
    n = 1
    while text in taken:
        text, n = f"{wanted}_{n}", n + 1
    return text
