"""A JobSource in memory that writes down every call, and a runner that needs no process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.measure.health_messages import SICK, HealthPlan, HealthReport, HealthUpdate
from tilewright.measure.messages import (
    Lease,
    LeaseUpdate,
    MeasureInput,
    MeasureResult,
    Registration,
    WorkerHello,
)

HELLO = WorkerHello(1, "w", "0123456789abcdef", "a" * 64, {}, {})


def trial(name: str) -> MeasureInput:
    return MeasureInput(name, 1, {}, {}, {"behaviour": "succeed"})


def success(item: MeasureInput) -> MeasureResult:
    return MeasureResult(item.item, item.attempt, 0.5, (0.5,))


@dataclass
class FakeSource:
    """Grants `leases` one after another; `faults` are raised by the named calls, in turn, None for no fault.

    `updates` are the replies to settle, in turn; `states` those to reports of health, by default what the
    report asks for. `when_empty` is called for a lease when there is none.
    """

    leases: list[list[MeasureInput]] = field(default_factory=list)
    faults: dict[str, list[Exception | None]] = field(default_factory=dict)
    updates: list[LeaseUpdate] = field(default_factory=list)
    renewals: list[LeaseUpdate] = field(default_factory=list)
    when_empty: Callable[[], None] = lambda: None
    renew_seconds: float = 60.0
    ttl_seconds: float = 30.0
    calls: list[tuple[str, ...]] = field(default_factory=list)
    settled: list[MeasureResult] = field(default_factory=list)
    renewed: threading.Event = field(default_factory=threading.Event)
    granted: int = 0
    plan: HealthPlan | None = None
    states: list[str] = field(default_factory=list)
    hellos: list[WorkerHello] = field(default_factory=list)
    reports: list[HealthReport] = field(default_factory=list)

    def register(self, hello: WorkerHello) -> Registration:
        self._called("register")
        self.hellos.append(hello)
        return Registration("worker_1", 30.0, self.renew_seconds, 0.0, self.plan)

    def lease(self, max_items: int, wait_seconds: float) -> Lease | None:
        self._called("lease")
        if not self.leases:
            self.when_empty()
            return None
        self.granted += 1
        items = tuple(self.leases.pop(0))
        return Lease(f"lease_{self.granted}", self.ttl_seconds, self.renew_seconds, items)

    def start(self, lease: str, item: str, attempt: int) -> None:
        self._called("start", item)

    def renew(self, lease: str) -> LeaseUpdate:
        try:
            self._called("renew")
            return self.renewals.pop(0) if self.renewals else LeaseUpdate()
        finally:
            self.renewed.set()

    def settle(self, lease: str, results: Sequence[MeasureResult]) -> LeaseUpdate:
        self._called("settle", *(r.item for r in results))
        self.settled.extend(results)
        return self.updates.pop(0) if self.updates else LeaseUpdate()

    def release(self, lease: str) -> None:
        self._called("release", lease)

    def health(self, report: HealthReport) -> HealthUpdate:
        self._called("health", report.occasion, report.verdict)
        self.reports.append(report)
        sick = report.verdict in SICK
        return HealthUpdate(self.states.pop(0) if self.states else "quarantined" if sick else "online")

    def leave(self) -> None:
        self._called("leave")

    def _called(self, name: str, *arguments: str) -> None:
        self.calls.append((name, *arguments))
        faults = self.faults.get(name)
        if faults and (fault := faults.pop(0)) is not None:
            raise fault


@dataclass
class FakeRunner:
    """Succeeds with every item, unless `does` says otherwise for its name; notes what is cancelled, and what
    was named to be built ahead of time."""

    does: dict[str, Callable[[MeasureInput], MeasureResult]] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)
    ahead: list[str | None] = field(default_factory=list)
    cancelled: list[str | None] = field(default_factory=list)

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
        self.ahead.append(None if ahead is None else ahead.item)
        self.measured.append(item.item)
        return self.does.get(item.item, success)(item)

    def cancel(self, item: str | None = None) -> None:
        self.cancelled.append(item)


@dataclass
class FakeTime:
    """A clock that moves only by sleeping."""

    now: float = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()
