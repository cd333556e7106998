"""Strict JSON for the dataclasses of the measurement protocol: a reader and a writer driven by annotations.

A field is a str, int, float, bool, a Literal of strings, another message, `X | None`, `tuple[X, ...]`,
`dict[str, str]`, or `dict[str, Any]` for a JSON object that this protocol carries without looking inside.
`Annotated[…, Bound(…)]` and `Annotated[…, Size(…)]` narrow numbers and lengths.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

# RFC 8785: an integer beyond this does not survive a reader that holds numbers as float64.
MAX_INTEGER = 2**53 - 1


class MessageError(ValueError):
    """A message is not what the protocol says; `pointer` is the JSON pointer (RFC 6901) of the place."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message, pointer)
        self.message = message
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.pointer or '(the message itself)'}: {self.message}"


@dataclass(frozen=True, slots=True)
class Bound:
    """The number lies in [low, high], or in (low, high] when `above`."""

    low: float
    high: float = math.inf
    above: bool = False

    def refusal(self, value: float) -> str | None:
        if value < self.low or (self.above and value == self.low):
            return f"must be {'above' if self.above else 'at least'} {self.low:g}, got {value!r}"
        if value > self.high:
            return f"must be at most {self.high:g}, got {value!r}"
        return None


@dataclass(frozen=True, slots=True)
class Size:
    """The string, array or object has between `least` and `most` characters or entries."""

    most: int
    least: int = 0

    def refusal(self, value: Any) -> str | None:
        one, many = ("character", "characters") if isinstance(value, str) else ("entry", "entries")
        if len(value) < self.least:
            return f"must have at least {self.least} {one if self.least == 1 else many}, got {len(value)}"
        if len(value) > self.most:
            return f"must have at most {self.most} {one if self.most == 1 else many}, got {len(value)}"
        return None


class Message:
    """Base of every message: a frozen dataclass that converts to and from JSON values."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """The message as JSON values, every field present; what it carries is shared, not copied."""
        return {f.name: _write(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, obj: object, pointer: str = "") -> Self:
        """The message that `obj` says. Raises MessageError for an unknown or missing field, a wrong type,
        a number that is not finite or out of range, and whatever `refusal` refuses."""
        if not isinstance(obj, Mapping):
            raise MessageError(f"expected an object, got {_name_of(obj)}", pointer)
        kind: Any = cls
        hints, required = _fields(kind)
        for key in obj:
            if key not in hints:
                known = ", ".join(hints)
                raise MessageError(f"unknown field; known fields: {known}", _join(pointer, key))
        values = {k: _read(hint, obj[k], _join(pointer, k)) for k, hint in hints.items() if k in obj}
        for key in required:
            if key not in values:
                raise MessageError("missing", _join(pointer, key))
        message = cls(**values)
        if reason := message.refusal():
            raise MessageError(reason, pointer)
        return message

    def refusal(self) -> str | None:
        """Why the fields do not go together, or None."""
        return None


@functools.cache
def _fields(cls: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Annotations by field, and the fields that have no default."""
    hints = get_type_hints(cls, include_extras=True)
    fields = dataclasses.fields(cls)
    required = tuple(
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    )
    return {f.name: hints[f.name] for f in fields}, required


def _join(pointer: str, key: object) -> str:
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _write(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, tuple):
        return [_write(v) for v in value]
    return value


def _read(hint: Any, value: object, pointer: str) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *narrowings = get_args(hint)
        read = _read(inner, value, pointer)
        for narrowing in narrowings:
            if reason := narrowing.refusal(read):
                raise MessageError(reason, pointer)
        return read
    if origin in (Union, types.UnionType):
        (inner,) = (a for a in get_args(hint) if a is not type(None))
        return None if value is None else _read(inner, value, pointer)
    if origin is Literal:
        if not isinstance(value, str) or value not in get_args(hint):
            raise MessageError(f"expected one of {', '.join(get_args(hint))}, got {value!r:.80}", pointer)
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise MessageError(f"expected an array, got {_name_of(value)}", pointer)
        return tuple(_read(get_args(hint)[0], v, _join(pointer, i)) for i, v in enumerate(value))
    if origin is dict:
        return _read_dict(get_args(hint)[1], value, pointer)
    if isinstance(hint, type) and issubclass(hint, Message):
        return hint.from_json(value, pointer)
    return _read_scalar(hint, value, pointer)


def _read_dict(values: Any, value: object, pointer: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise MessageError(f"expected an object, got {_name_of(value)}", pointer)
    for key in value:
        if not isinstance(key, str):
            raise MessageError(f"expected names that are strings, got {key!r:.80}", pointer)
    if values is Any:
        return dict(value)
    return {k: _read(values, v, _join(pointer, k)) for k, v in value.items()}


def _read_scalar(hint: Any, value: object, pointer: str) -> Any:
    # bool is a subclass of int: `true` is never a number here.
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise MessageError("must be a finite number", pointer)
        return number
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > MAX_INTEGER:
            raise MessageError(f"must be an integer of at most {MAX_INTEGER} in magnitude", pointer)
        return value
    if (hint is str and isinstance(value, str)) or (hint is bool and isinstance(value, bool)):
        return value
    expected = {float: "a number", int: "an integer", str: "a string", bool: "true or false"}[hint]
    raise MessageError(f"expected {expected}, got {_name_of(value)}", pointer)


def _name_of(value: object) -> str:
    """What a person who reads JSON calls this value."""
    names = {type(None): "null", bool: "true or false", str: "a string", dict: "an object", list: "an array"}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {value!r:.40}"
    return names.get(type(value), type(value).__name__)
