"""The part of a store's contract that is about best-known schedules; `store` says what holds of all parts."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from .best_records import (
    BestSchedule,
    ChangedKey,
    Duel,
    ForeignRecord,
    Freeze,
    KeptSchedule,
    Pin,
    Retirement,
)
from .records import Page

Imported = Literal["best", "challenger", "slower", "known"]


class ScheduleStore(Protocol):
    """Best-known schedules, one for each (workload, target, hardware).

    A result may become best in the transaction that settles it, if it was checked against the reference, is
    not `censored`, a codegen version is known, and its candidate was not retired. It takes the place of a
    slower one of its own job, or of none. One of another job stands until `decide` has the times of both; a
    faster reading is its `challenger` meanwhile. Trials measured outside cannot be timed again by the fleet:
    when their job ends, its challenger takes the place.
    """

    def best(
        self, workload: str, target: str, hardware: str, freeze: str | None = None
    ) -> BestSchedule | None:
        """The schedule for exactly this key: the one that is pinned, else the best-known one; with `freeze`,
        the one that was so when that was made. None where there is none. One indexed query, whatever is
        stored. NotFound for an unknown freeze."""

    def standing(self, workload: str, target: str, hardware: str) -> BestSchedule | None:
        """The best-known schedule, whatever is pinned."""

    def nearby(self, workload: str, structure: str, limit: int = 32) -> list[KeptSchedule]:
        """Best-known schedules that might do for a key that has none: of this workload on other targets and
        hardware, fastest first, then of other workloads of this structure, newest first. At most `limit` of
        each."""

    def kept(self, after: str | None = None, limit: int = 100) -> Page[KeptSchedule]:
        """All best-known schedules in the order of their keys, whatever is pinned: a pin is named with them.
        `after` is `Page.next`."""

    def rivals(self, workload: str, target: str, hardware: str, limit: int = 10) -> list[BestSchedule]:
        """The fastest trials of a key that could be pinned, fastest first."""

    def duels(self, workload: str, target: str, hardware: str, limit: int = 20) -> list[Duel]:
        """How the best-known schedule of a key was decided, newest first."""

    def retirements(self, workload: str, target: str, hardware: str, limit: int = 20) -> list[Retirement]:
        """Trials of a key whose schedules are not served any more, newest first."""

    def crown(self, job_id: str, epoch: int, number: int, samples: Sequence[float]) -> BestSchedule | None:
        """Trial `number` of a job won the final rounds, in which it took these seconds; what stands now.

        Its seconds become the median of the samples. It takes the place of any other trial of its job, whose
        single reading was the luckier one; a schedule of another job stands until `decide`. One that was
        retired meanwhile changes nothing. Raises NotFound, InvalidValue for a trial without a time, and
        StaleSearch.
        """

    def decide(
        self, job_id: str, epoch: int, times: Mapping[str, Sequence[float]], worker: str | None = None
    ) -> BestSchedule | None:
        """These trials of one key were timed in turn on one device, `worker` or this process; what stands
        now.

        The one with the least median is best-known from now on, the one that stood before among equals; its
        seconds become that median. One that may not be served (any more) is left out. Without effect where
        what stands is none of them: it was decided meanwhile. InvalidValue, StaleSearch, JobOver.
        """

    def confirm(
        self, job_id: str, epoch: int, trial: str, worker: str, seconds: float
    ) -> BestSchedule | None:
        """Another worker has checked this trial's schedule and took these seconds; what stands now. Without
        effect where another trial is best-known. NotFound, StaleSearch, JobOver."""

    def retire(self, trial_id: str, reason: str) -> BestSchedule | None:
        """Never serve this trial's schedule again, nor that of an equal candidate; returns what is best-known
        for its key now. A pin to it ends. May be repeated."""

    def report(self, trial: str, reason: str) -> str:
        """`retire`, said by a compiler for which this schedule does not replay: what became of it, in a few
        words. A database that can only be read keeps it."""

    def pin(
        self, workload: str, target: str, hardware: str, trial: str | None, note: str = "", by: str = ""
    ) -> Pin:
        """Serve this trial's schedule for the key from now on, or with None the default schedule, in place of
        any other pin. InvalidValue for a trial of another key or one that may not be served. NotFound."""

    def unpin(self, workload: str, target: str, hardware: str) -> bool:
        """End the pin of a key; whether there was one."""

    def pins(self) -> list[Pin]:
        """All pins, oldest first."""

    def freeze(self, name: str, note: str = "", by: str = "") -> Freeze:
        """Remember under this name which schedule `best` gives for every key now. Conflict where the name is
        taken."""

    def unfreeze(self, name: str) -> Freeze:
        """Forget a freeze. NotFound."""

    def freezes(self) -> list[Freeze]:
        """All freezes, oldest first."""

    def changed_since(self, name: str) -> list[ChangedKey]:
        """Keys whose best-known schedule does other things than the frozen one; new times of the same
        schedule change nothing. In the order of their keys. NotFound."""

    def import_record(self, record: ForeignRecord) -> Imported:
        """Take a record of another store in, as a job of origin `imported` that is over.

        It becomes `best` where the key has none, else `challenger` where it reads faster, else `slower`;
        `known` where this very record is here already. Another store's time replaces nothing by itself.
        """
