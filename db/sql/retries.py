"""Calls that the database undid for the sake of another one are made again."""

import functools
import random
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from .database import TryAgain

_TRIES = 10
_FIRST_PAUSE = 0.005

T = TypeVar("T", bound=type)


def tried_again(cls: T) -> T:
    """Let each public method of a store, with all that it reads and writes, be called again on TryAgain.

    A method does its work in one transaction at a time, and what was committed by it may be done twice: that
    is so of all methods of a Store, or a client could not repeat them either.
    """
    for name in dir(cls):
        found = getattr(cls, name)
        if isinstance(found, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _again(found))
    return cls


def _again(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        for attempt in range(_TRIES - 1):
            try:
                return method(*arguments, **named)
            except TryAgain:
                time.sleep(random.uniform(0, _FIRST_PAUSE * 2**attempt))
        return method(*arguments, **named)

    return call
