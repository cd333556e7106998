"""Index maps from JSON that may come from anywhere."""

from __future__ import annotations

from typing import Any

from .errors import TraceError
from .index_expr import MAX_NUMBER, Plain

Json = Any
#: Of one map: the outputs, the terms of each, the factors of a term, and divisions inside of divisions.
MAX_OUTPUTS = 32
MAX_TERMS = 32
MAX_FACTORS = 2
MAX_DEPTH = 4


def read_map(data: Json, at: str) -> Plain:
    """The outputs of a map as plain values. Raises TraceError with a JSON pointer."""
    outputs = _array(data, at)
    if not 1 <= len(outputs) <= MAX_OUTPUTS:
        raise TraceError(f"an index map has from 1 to {MAX_OUTPUTS} outputs, got {len(outputs)}", at)
    return tuple(_poly(p, f"{at}/{n}", 0) for n, p in enumerate(outputs))


def _poly(data: Json, at: str, depth: int) -> Plain:
    if not isinstance(data, list | tuple):
        return _integer(data, at)
    if not 1 <= len(data) <= MAX_TERMS or depth > MAX_DEPTH:
        limits = f"at most {MAX_TERMS} terms and {MAX_DEPTH} divisions inside of each other"
        raise TraceError(f"an index in a map has {limits}", at)
    return tuple(_term(t, f"{at}/{n}", depth) for n, t in enumerate(data))


def _term(data: Json, at: str, depth: int) -> Plain:
    term = _array(data, at)
    if not 1 <= len(term) <= 1 + MAX_FACTORS:
        raise TraceError("a term is a coefficient and its atoms", at)
    atoms = (_atom(a, f"{at}/{n + 1}", depth) for n, a in enumerate(term[1:]))
    return (_integer(term[0], f"{at}/0"), *atoms)


def _atom(data: Json, at: str, depth: int) -> Plain:
    if not isinstance(data, list | tuple):
        number = _integer(data, at)
        if number < 0:
            raise TraceError(f"an index of a map is a number from 0, got {number}", at)
        return number
    if len(data) != 3 or data[0] != "floordiv":
        raise TraceError("an atom is the number of an index, or ['floordiv', a, b]", at)
    by = _integer(data[2], f"{at}/2")
    if by < 1:
        raise TraceError(f"the divisor must be at least 1, got {by}", f"{at}/2")
    return ("floordiv", _poly(data[1], f"{at}/1", depth + 1), by)


def _array(data: Json, at: str) -> list[Json] | tuple[Json, ...]:
    if not isinstance(data, list | tuple):
        raise TraceError(f"expected an array, got {data!r}", at)
    return data


def _integer(data: Json, at: str) -> int:
    if type(data) is not int or abs(data) > MAX_NUMBER:
        raise TraceError(f"expected an integer up to 2**31, got {data!r}", at)
    return data
