"""What may go wrong, one thing at a time, in an order that a seed decides."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import psutil
from part import Part, send
from proxy import Weather
from stand import Stand

_YEAR = 365.25 * 86400
_STARTING = 15.0
Say = Callable[[str], None]
Kinds = dict[str, tuple[int, Callable[[], str | None]]]
"""For each kind its weight, and what does it and says to what; None where there was nothing to hit."""


@dataclass
class Faults:
    """Strikes a stand, one fault after the other: its `processes`, or their `surroundings`.

    `done` counts the faults that hit something by kind.
    """

    stand: Stand
    draw: random.Random
    say: Say
    lane: Literal["processes", "surroundings"]
    done: Counter[str] = field(default_factory=Counter)

    def until(self, end: float) -> None:
        """Strike until this time of the monotonic clock; what has begun then is ended."""
        while time.monotonic() < end:
            time.sleep(self.draw.uniform(0.5, 4.0))
            self.strike()

    def strike(self) -> None:
        """One fault, and its end."""
        kinds = self._of_processes() if self.lane == "processes" else self._of_surroundings()
        (name,) = self.draw.choices(list(kinds), [weight for weight, _ in kinds.values()])
        _, fault = kinds[name]
        told = fault()
        if told is not None:
            self.done[name] += 1
            self.say(f"{name}: {told}")

    def _of_processes(self) -> Kinds:
        common: Kinds = {
            "api killed": (1, lambda: self._kill(self.stand.apis)),
            "api stopped": (2, lambda: self._stop(self.stand.apis, _whole)),
            "search killed": (3, lambda: self._kill(self.stand.searchers, _searches)),
            "search stopped": (2, lambda: self._stop(self.stand.searchers, _searches)),
            "worker killed": (2, lambda: self._kill(self.stand.workers)),
            "worker stopped": (3, lambda: self._stop(self.stand.workers, _whole)),
            "worker drained": (1, self._drain),
            "fork server killed": (2, lambda: self._kill(self.stand.workers, _fork_servers)),
            "fork server stopped": (1, lambda: self._stop(self.stand.workers, _fork_servers)),
            "candidate killed": (3, lambda: self._kill(self.stand.workers, _candidates)),
            "candidate stopped": (2, lambda: self._stop(self.stand.workers, _candidates)),
        }
        if self.stand.form == "embedded":
            return common
        return common | {
            "api child killed": (3, lambda: self._kill(self.stand.apis, _api_children)),
            "api child stopped": (2, lambda: self._stop(self.stand.apis, _api_children)),
            "runner killed": (3, lambda: self._kill(self.stand.searchers)),
            "runner stopped": (3, lambda: self._stop(self.stand.searchers, _alone)),
        }

    def _of_surroundings(self) -> Kinds:
        common: Kinds = {
            "connections dropped": (2, lambda: self._weather("drop", 4.0)),
            "connections delayed": (2, lambda: self._weather("delay", 6.0)),
            "connections stalled": (1, lambda: self._weather("stall", 13.0)),
            "answers cut": (3, lambda: self._weather("cut", 5.0)),
            "clock jumped": (2, self._jump),
            "disk full": (2, self._fill),
        }
        if self.stand.form == "embedded":
            return common
        return common | {
            "PostgreSQL killed": (1, lambda: self._end_postgres(signal.SIGKILL)),
            "PostgreSQL stopped at once": (1, lambda: self._end_postgres(signal.SIGQUIT)),
            "PostgreSQL stood still": (1, self._freeze_postgres),
            "session of PostgreSQL killed": (1, self._kill_session),
        }

    def _kill(
        self, parts: list[Part], of: Callable[[Part], list[psutil.Process]] | None = None
    ) -> str | None:
        """SIGKILL of one process, and of nothing else."""
        part = self.draw.choice(parts)
        found = (of or _alone)(part)
        if not found:
            return None
        hit = self.draw.choice(found)
        # A server ends where one of its processes does not even start.
        part.hit = part.hit or of is None or time.monotonic() - part.begun < _STARTING
        return f"{part.name}, process {hit.pid}" if send(hit, signal.SIGKILL) else None

    def _stop(self, parts: list[Part], of: Callable[[Part], list[psutil.Process]]) -> str | None:
        """SIGSTOP for a while, which may be longer than a lease or a runner's silence."""
        part = self.draw.choice(parts)
        found = of(part)
        if not found:
            return None
        hit = found if of is _whole else [self.draw.choice(found)]
        seconds = self.draw.choice((0.5, 2.0, 5.0, 9.0))
        _signal_all(hit, signal.SIGSTOP)
        time.sleep(seconds)
        _signal_all(hit, signal.SIGCONT)
        return f"{part.name}, {len(hit)} processes for {seconds:g} s"

    def _drain(self) -> str | None:
        part = self.draw.choice(self.stand.workers)
        found = _alone(part)
        if not found:
            return None
        part.hit = True
        return part.name if send(found[0], signal.SIGTERM) else None

    def _weather(self, weather: Weather, most: float) -> str:
        seconds = self.draw.uniform(0.5, most)
        self.stand.proxy.set(weather)
        time.sleep(seconds)
        self.stand.proxy.set("calm")
        return f"{seconds:.1f} s"

    def _jump(self) -> str:
        part = self.draw.choice(self.stand.workers)
        seconds = self.draw.choice((-_YEAR, -86400.0, -60.0, 60.0, 86400.0, _YEAR))
        self.stand.clock(part).write_text(str(seconds))
        return f"{part.name}, {seconds:+.0f} s"

    def _fill(self) -> str | None:
        if self.stand.disk.reason:
            return None
        seconds = self.draw.uniform(1.0, 8.0)
        self.stand.disk.fill()
        time.sleep(seconds)
        self.stand.disk.free()
        return f"worker-1, {seconds:.1f} s"

    def _end_postgres(self, how: signal.Signals) -> str:
        assert self.stand.postgres is not None
        self.stand.database_went()
        self.stand.postgres.stop(how)
        pause = self.draw.uniform(0.1, 6.0)
        time.sleep(pause)
        self.stand.begin_postgres_again()
        return f"{pause:.1f} s"

    def _freeze_postgres(self) -> str:
        assert self.stand.postgres is not None
        seconds = self.draw.choice((1.0, 4.0, 8.0, 14.0))
        self.stand.database_went()
        self.stand.postgres.pause()
        time.sleep(seconds)
        self.stand.postgres.go_on()
        self.stand.database_came()
        return f"{seconds:g} s"

    def _kill_session(self) -> str | None:
        """PostgreSQL then ends all other sessions, too, and recovers."""
        assert self.stand.postgres is not None
        sessions = self.stand.postgres.sessions()
        if not sessions:
            return None
        self.stand.database_went()
        hit = self.draw.choice(sessions)
        send(hit, signal.SIGKILL)
        self.stand.database_came()
        return f"process {hit.pid}, one of {len(sessions)}"


def _alone(part: Part) -> list[psutil.Process]:
    return part.tree()[:1]


def _whole(part: Part) -> list[psutil.Process]:
    return part.tree()


def _searches(part: Part) -> list[psutil.Process]:
    return part.children("tilewright.service.search_child")


def _api_children(part: Part) -> list[psutil.Process]:
    return part.children("tilewright.service.api_child")


def _fork_servers(part: Part) -> list[psutil.Process]:
    return part.children("tilewright.measure.zygote")


def _candidates(part: Part) -> list[psutil.Process]:
    return part.candidates()


def _signal_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for each in processes:
        send(each, number)
