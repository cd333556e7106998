"""Waiting inside a request: short looks at the store with nothing held in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .context import Context
from .durations import seconds_of
from .errors import InvalidRequest

T = TypeVar("T")

LONGEST_WAIT = 60.0


def wait_seconds(wait: str) -> float:
    """Of a `wait` parameter, at most LONGEST_WAIT. Raises InvalidRequest."""
    try:
        return min(LONGEST_WAIT, seconds_of(wait))
    except ValueError as error:
        raise InvalidRequest.parameter("wait", f"wait {error}") from error


async def poll(
    context: Context, look: Callable[[], Awaitable[T | None]], seconds: float, interval: float
) -> T | None:
    """The first answer of `look` that is not None; None after `seconds`, or when the server stops."""
    deadline = time.monotonic() + seconds
    while True:
        found = await look()
        if found is not None:
            return found
        remaining = deadline - time.monotonic()
        if remaining <= 0 or context.stopping.is_set():
            return None
        await asyncio.sleep(min(interval, remaining))
