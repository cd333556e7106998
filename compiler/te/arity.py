"""The parameters of the functions that users write."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .errors import tensor_error


def parameter_names(f: Callable[..., Any], count: int, what: str) -> list[str]:
    """The names of the parameters that take `count` indices. Parameters with a default are not for indices;
    `*args` takes those that are left. TensorError for a function that takes another number."""
    if not callable(f):
        raise tensor_error(f"{what}: expected a function of {_count(count, 'index')}, got {type(f).__name__}")
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:
        raise tensor_error(f"{what}: the parameters of {f!r} are not known; wrap it in a lambda") from None
    positional: list[str] = []
    rest = False
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            rest = True
        elif p.default is not p.empty or p.kind is p.VAR_KEYWORD:
            continue
        elif p.kind is p.KEYWORD_ONLY:
            raise tensor_error(
                f"{what}: the function needs the keyword argument {p.name!r}, which an index cannot be"
            )
        else:
            positional.append(p.name)
    if len(positional) != count and not (rest and len(positional) < count):
        least = "at least " if rest else ""
        raise tensor_error(
            f"{what}: the function takes {least}{_count(len(positional), 'argument')}, but the shape has "
            f"{_count(count, 'dimension')}; expected {count}, got {len(positional)}"
        )
    return positional + [f"i{d}" for d in range(len(positional), count)]


def _count(n: int, noun: str) -> str:
    plural = {"index": "indices"}.get(noun, noun + "s")
    return f"1 {noun}" if n == 1 else f"{n} {plural}"
