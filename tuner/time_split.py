"""Where the seconds of a search went."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

__all__ = ["Stopwatch", "TimeSplit"]


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Seconds by what they were spent on.

    generate: making the space, and schedules of its points. features: feature rows. train: teaching the cost
    model. propose: the rest of deciding what to measure. load: loading the libraries of the cost model, once
    in a process. build and run: compiling the candidates, and
    checking and timing them. other: what is left of the wall time. The first five are CPU seconds of the
    search, which may think while something is measured, and several workers build and run at once: the parts
    may add up to more than the wall time, and nothing is left then.
    """

    generate: float = 0.0
    features: float = 0.0
    train: float = 0.0
    propose: float = 0.0
    load: float = 0.0
    build: float = 0.0
    run: float = 0.0
    other: float = 0.0

    @property
    def search(self) -> float:
        """The search's own part, which grows with its trials."""
        return self.generate + self.features + self.train + self.propose

    def to_json(self) -> dict[str, float]:
        return asdict(self)


class Stopwatch:
    """Counts seconds by part. A part within another one is not counted there.

    One thread at a time may be within parts; `add` may be called from any.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._within: list[str] = []
        self._since = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts what is done within as `name`."""
        self._turn()
        self._within.append(name)
        try:
            yield
        finally:
            self._turn()
            self._within.pop()

    def add(self, name: str, seconds: float) -> None:
        """Counts seconds that were measured elsewhere."""
        self._spent[name] += seconds

    def spent(self, name: str) -> float:
        """Seconds of a part until now, while nothing is within it."""
        return self._spent[name]

    def split(self, wall: float) -> TimeSplit:
        """What was counted, of so many seconds of wall time in all."""
        known = sum(self._spent.values())
        return TimeSplit(**self._spent, other=max(0.0, wall - known))

    def _turn(self) -> None:
        now = self._clock()
        if self._within:
            self._spent[self._within[-1]] += now - self._since
        self._since = now
