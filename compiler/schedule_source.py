"""Where best-known schedules come from: what build asks of a store or a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

KINDS = ("exact", "same_family", "transferred", "default")
"""How a schedule was found: for this very workload, target and hardware; for a target or hardware of the same
family; for another one, or a related workload, and applied here; or not at all."""

ALLOWED = ("same_family", "transferred")
"""What a lookup may be allowed to answer beside `exact`."""


class KnownSchedule(Protocol):
    """The best-known schedule of a workload on a target and hardware, as plain data.

    trace: canonical JSON text. seconds: of one call. kind and reason: how it was found, in the words of
    `Module.schedule_source`; `default` where somebody wants the default schedule for this key. trial: the
    measurement behind it. codegen_version: of the code generator whose code was measured.
    """

    @property
    def trace(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    @property
    def kind(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def trial(self) -> str: ...

    @property
    def codegen_version(self) -> str: ...


class KeyedSchedule(KnownSchedule, Protocol):
    """One that says for what it is best-known, by keys."""

    @property
    def workload(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def hardware(self) -> str: ...


class NearbySchedule(Protocol):
    """A schedule that is best-known for another key; program, description (of the target) and facts (of the
    hardware) are JSON texts."""

    @property
    def schedule(self) -> KeyedSchedule: ...

    @property
    def program(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def facts(self) -> str: ...


class ScheduleSource(Protocol):
    """Looks schedules up by keys (hexadecimal SHA-256).

    Every method raises ConnectionError when the source cannot be reached, within one second: a build waits
    for the answer.
    """

    def best(
        self, workload: str, target: str, hardware: str, freeze: str | None = None
    ) -> KnownSchedule | None:
        """The best-known schedule, or with `freeze` the one that was so when that was made; None when there
        is none."""

    def nearby(self, workload: str, structure: str, limit: int = 32) -> Sequence[NearbySchedule]:
        """Schedules of this workload for other targets and hardware, and of workloads of this structure."""

    def report(self, trial: str, reason: str) -> str:
        """Say that a trial's schedule does not replay with this compiler; what became of it, in a few
        words."""
