"""How a worker bears with a service that is out of reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .messages import SourceUnreachable

T = TypeVar("T")

# Sleeping is cut into slices, so that a signal that only sets a flag is noticed soon.
_SLICE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds. `attach` counts at the start, when a wrong address is likely; `outage` later, when results
    are at stake. `troubles` is how many unexpected errors in a row end the worker."""

    attach: float = 20.0
    outage: float = 600.0
    shortest_pause: float = 0.2
    longest_pause: float = 5.0
    troubles: int = 5


@dataclass(slots=True)
class Persistence:
    """Makes a call again, after longer and longer pauses, while the service is out of reach."""

    patience: Patience
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _out_of_reach: bool = field(default=False, init=False)

    def call(self, action: Callable[[], T], seconds: float, given_up: Callable[[], bool]) -> T:
        """The result of `action`. Raises its SourceUnreachable once `seconds` have passed or `given_up`;
        other errors at once."""
        deadline = self.clock() + seconds
        pause = self.patience.shortest_pause
        while True:
            try:
                result = action()
            except SourceUnreachable as error:
                if not self._out_of_reach:
                    self._out_of_reach = True
                    self.say(f"{error}; trying again for {seconds:g} s")
                if self.clock() + pause > deadline or given_up():
                    raise
                self.pause(pause, given_up)
                pause = min(2 * pause, self.patience.longest_pause)
            else:
                if self._out_of_reach:
                    self._out_of_reach = False
                    self.say("the service is within reach again")
                return result

    def pause(self, seconds: float, given_up: Callable[[], bool]) -> None:
        """Sleeps, but not past giving up."""
        end = self.clock() + seconds
        while (left := end - self.clock()) > 0 and not given_up():
            self.sleep(min(left, _SLICE_SECONDS))
