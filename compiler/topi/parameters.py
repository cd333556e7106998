"""The parameters of operators: what a request may say, checked value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Json = Any
Kind = Literal["int", "bool", "float", "choice", "pair", "triple", "shape"]

#: An extent or a batch; the bytes of a whole program are limited by the verifier.
MAX_EXTENT = 1 << 24
MAX_RANK = 8


class OperatorError(ValueError):
    """A request for an operator that cannot be met. `pointer` is a JSON pointer into the request, or empty
    for the whole."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message, pointer)
        self.message = message
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.message} (at {self.pointer})" if self.pointer else self.message


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. Without a default it must be given. `low` and `high` bound integers, the entries of
    pairs and shapes, and floats."""

    name: str
    kind: Kind
    doc: str
    default: Json = None
    required: bool = False
    low: float = 1
    high: float = MAX_EXTENT
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Json]:
        """The JSON schema (2020-12) of the values that `read` takes."""
        number = {"type": "integer", "minimum": int(self.low), "maximum": int(self.high)}
        out: dict[str, Json]
        match self.kind:
            case "int":
                out = dict(number)
            case "bool":
                out = {"type": "boolean"}
            case "float":
                out = {"type": "number", "minimum": self.low, "maximum": self.high}
            case "choice":
                out = {"type": "string", "enum": list(self.choices)}
            case "pair" | "triple":
                n = 2 if self.kind == "pair" else 3
                each = {"type": "array", "items": number, "minItems": n, "maxItems": n}
                out = {"anyOf": [number, each]}
            case "shape":
                out = {"type": "array", "items": number, "minItems": 1, "maxItems": MAX_RANK}
        out["description"] = self.doc
        if not self.required and self.default is not None:
            out["default"] = self.default
        return out

    def read(self, value: Json, at: str) -> Json:
        """`value` as the operator takes it. Raises OperatorError."""
        match self.kind:
            case "int":
                return self._int(value, at)
            case "bool":
                if not isinstance(value, bool):
                    raise OperatorError(f"{self.name!r} must be true or false, got {_kind(value)}", at)
                return value
            case "float":
                return self._float(value, at)
            case "choice":
                if value not in self.choices or not isinstance(value, str):
                    got = repr(value) if isinstance(value, str) else _kind(value)
                    raise OperatorError(
                        f"{self.name!r} must be one of {', '.join(self.choices)}, got {got}", at
                    )
                return value
            case "pair" | "triple":
                count, word = (2, "two") if self.kind == "pair" else (3, "three")
                if not isinstance(value, list):
                    return (self._int(value, at, f" or an array of {word}"),) * count
                if len(value) != count:
                    raise OperatorError(
                        f"{self.name!r} must be an integer or an array of {word}, got {len(value)} entries",
                        at,
                    )
                return tuple(self._int(v, f"{at}/{i}") for i, v in enumerate(value))
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_RANK:
            got = f"{len(value)} entries" if isinstance(value, list) else _kind(value)
            raise OperatorError(f"{self.name!r} must be an array of 1 to {MAX_RANK} integers, got {got}", at)
        return tuple(self._int(v, f"{at}/{i}") for i, v in enumerate(value))

    def _int(self, value: Json, at: str, more: str = "") -> int:
        if type(value) is not int:
            raise OperatorError(f"{self.name!r} must be an integer{more}, got {_kind(value)}", at)
        self._range(value, at)
        return value

    def _float(self, value: Json, at: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise OperatorError(f"{self.name!r} must be a number, got {_kind(value)}", at)
        self._range(value, at)
        return float(value)

    def _range(self, value: float, at: str) -> None:
        if not self.low <= value <= self.high:
            high = self.high if self.kind == "float" else int(self.high)
            raise OperatorError(f"{self.name!r} must be from {self.low:g} to {high}, got {value}", at)


def escaped(key: object) -> str:
    """A name in a JSON pointer (RFC 6901)."""
    return str(key).replace("~", "~0").replace("/", "~1")


def _kind(x: Json) -> str:
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a number",
    }
    return "null" if x is None else names.get(type(x), type(x).__name__)
