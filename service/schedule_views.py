"""What the API answers of best-known schedules, as models; see `views`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .views import View

NEXT_PAGE_HEADER = "Tilewright-Next-Page"
"""With which token the next page of an export begins; absent at the last."""


class SearchView(View):
    """How complete the search behind a schedule is."""

    done: int
    asked: int
    state: str


class BaselineView(View):
    """What the default schedule takes on the same hardware; with `bound`, it takes longer than that."""

    trial: str
    seconds: float
    bound: bool


class ConfirmationView(View):
    """The second worker that checked the schedule, and its time there."""

    worker: str
    seconds: float
    at: float


class ChallengerView(View):
    """A trial of another job that read faster, and was not timed against the best in turn yet."""

    trial: str
    seconds: float


class PinView(View):
    """What somebody wants for a key, and what is served; `trial` null: the default schedule."""

    workload: str
    target: str
    hardware: str
    trial: str | None
    note: str
    by: str
    at: float


class PinsView(View):
    pins: list[PinView]


class ScheduleView(View):
    """The best-known schedule, how it was found, and the evidence for it.

    `kind`: exact, same_family, transferred or default. The times are of trial `trial`: of a default schedule
    that was never measured there are none. `speedup`: the default schedule's time over this one, a lower
    bound where `baseline.bound`. `dispersion`: (largest - smallest) / median of the samples. `pin`: what is
    pinned for the key; in a list of what is best-known it is served instead.
    """

    kind: str
    reason: str
    workload: str
    target: str
    hardware: str
    trace: dict[str, Any]
    seconds: float | None = None
    samples: list[float] = Field(default_factory=list)
    dispersion: float | None = None
    error: float | None = None
    job: str | None = None
    trial: str | None = None
    worker: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    measured_at: float | None = None
    codegen: str | None = None
    search: SearchView | None = None
    baseline: BaselineView | None = None
    speedup: float | None = None
    confirmed: bool = False
    confirmation: ConfirmationView | None = None
    challenger: ChallengerView | None = None
    pin: PinView | None = None
    imported: bool = False


class SchedulesView(View):
    schedules: list[ScheduleView]
    next_page_token: str | None = None


class NearbyView(View):
    """A schedule that is best-known for another key, with the texts of its keys."""

    schedule: ScheduleView
    program: str
    description: str
    facts: str


class NearbysView(View):
    schedules: list[NearbyView]


class DuelView(View):
    """A best-known schedule and others timed in turn on one device; times by trial."""

    job: str
    incumbent: str
    winner: str
    times: dict[str, list[float]]
    worker: str | None
    at: float


class RetirementView(View):
    trial: str
    reason: str
    at: float


class ExplanationView(View):
    """Why a lookup answers what it answers: what is `served`, what stands without pins, what could be pinned
    (`rows`, fastest first), how it was decided, and what is not served any more."""

    workload: str
    target: str
    hardware: str
    served: ScheduleView | None
    standing: ScheduleView | None
    rows: list[ScheduleView]
    duels: list[DuelView]
    retired: list[RetirementView]


class FreezeView(View):
    name: str
    note: str
    by: str
    at: float
    count: int


class FreezesView(View):
    freezes: list[FreezeView]


class ChangedKeyView(View):
    """A key whose best-known schedule is another than the frozen one."""

    workload: str
    target: str
    hardware: str
    frozen: str
    now: str | None


class ChangesView(View):
    changed: list[ChangedKeyView]


class ReportView(View):
    """What became of a schedule that was reported: `retired`, or `kept` with the reason."""

    outcome: str
    reason: str = ""


class BadLineView(View):
    """A line that was not taken; `number` counts from 1."""

    number: int
    reason: str


class ImportView(View):
    """What became of the lines: how many are `best` now, `challenger`, `slower` or `known`; and the bad
    ones."""

    best: int = 0
    challenger: int = 0
    slower: int = 0
    known: int = 0
    refused: list[BadLineView] = Field(default_factory=list)
