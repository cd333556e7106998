"""A call that must be over in time, whatever it waits for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

import httpx

from ..measure.messages import SourceError
from .exchange import ApiError

T = TypeVar("T")

# What a call of the client raises; the last is what httpx raises when the client was closed meanwhile.
_RAISED = (httpx.HTTPError, SourceError, ApiError, RuntimeError)


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns or raises. TimeoutError after `seconds`; the call then ends unheard.

    The time limits of an HTTP client hold for each step, and not for the look-up of a name.
    """
    answers: queue.SimpleQueue[tuple[T, None] | tuple[None, Exception]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((call(), None))
        except _RAISED as error:
            answers.put((None, error))

    threading.Thread(target=run, daemon=True, name="within").start()
    try:
        value, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # of the pair, one is None
