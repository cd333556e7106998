"""How many requests a second each caller may make: a token bucket for each, of this process alone.

With several API processes behind one address a caller may make so many at each of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from .auth import OPEN_PATHS, Principal
from .errors import RateLimited
from .problems import respond

_LONGEST_WAIT = 86_400.0
_CALLERS = 10_000
"""So many are remembered; whoever is forgotten begins with a full bucket."""


class Buckets:
    """A caller may make `rate` requests a second, and `burst` at once after a pause; a rate of 0: any number.

    Safe to use from several threads.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, rate: float | None = None) -> None:
        """One request of this caller, whose own `rate` may be another. Raises RateLimited, with the seconds
        after which the next one is taken."""
        pace = self._rate if rate is None else rate
        if pace <= 0:
            return
        burst = max(1.0, self._burst if rate is None else min(self._burst, 2 * rate))
        with self._lock:
            now = self._clock()
            left, at = self._left.pop(caller, (burst, now))
            left = min(burst, left + (now - at) * pace)
            allowed = left >= 1.0
            self._left[caller] = (left - 1.0 if allowed else left, now)
            while len(self._left) > _CALLERS:
                self._left.popitem(last=False)
        if not allowed:
            wait = math.ceil(min(_LONGEST_WAIT, (1.0 - left) / pace))
            raise RateLimited(
                f"more than {pace:g} requests a second: ask again in {wait} s",
                headers={"Retry-After": str(wait)},
            )


class RateLimits:
    """ASGI middleware: takes each request out of the bucket of its token, or of its address without one."""

    def __init__(self, app: ASGIApp, buckets: Buckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            who: Principal = scope["state"]["principal"]
            try:
                self._buckets.take(who.caller, who.rate)
            except RateLimited as error:
                await respond(error, scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)
