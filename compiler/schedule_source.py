"""Where best-known schedules come from: what build asks of a store or a server."""

from __future__ import annotations

from typing import Protocol


class KnownSchedule(Protocol):
    """The best-known schedule of a workload on a target and hardware, as plain data.

    trace: canonical JSON text. seconds: of one call. kind and reason: how it was found, in the words of
    `Module.schedule_source`.
    """

    @property
    def trace(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    @property
    def kind(self) -> str: ...

    @property
    def reason(self) -> str: ...


class ScheduleSource(Protocol):
    """Looks schedules up by keys (hexadecimal SHA-256)."""

    def best(self, workload: str, target: str, hardware: str) -> KnownSchedule | None:
        """The best-known schedule, or None when there is none.

        Raises ConnectionError when the source cannot be reached, within one second: a build waits for the
        answer.
        """
