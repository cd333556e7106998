"""The contract of a store: each docstring is a promise, and one suite holds every store to them.

Of all methods: values go in and out by copy; a call is one transaction that is on disk when it returns;
several processes may call at once. A text or number that cannot be stored is refused with InvalidValue and
an id or key that does not exist with NotFound, both before anything is written. StoreUnavailable: the
database cannot be reached, stays locked, or is no longer the one that was opened; StoreFull: its disk is
full; nothing of such a call was stored.
Only the database's clock decides what has expired.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

from .build_store import BuildStore
from .fleet_store import FleetStore
from .health_store import HealthStore
from .job_control_store import JobControlStore
from .leadership import Leadership
from .mark import Mark
from .records import (
    NO_LIMITS,
    Event,
    Hardware,
    Job,
    NewJob,
    NewTrial,
    Page,
    PastSearch,
    PastTrial,
    Retiming,
    Settlement,
    Target,
    Token,
    TokenLimits,
    Trial,
    Workload,
)
from .retention_store import RetentionStore
from .schedule_store import ScheduleStore
from .service_store import ServiceStore
from .summary_store import SummaryStore
from .words import FinalJobState, JobState, Origin, Scope


class CatalogStore(Protocol):
    """Workloads, targets and kinds of hardware: the three parts of a best-known schedule's key."""

    def put_workload(self, key: str, name: str, program: str, script: str) -> Workload:
        """Store a program under its key; a known key keeps its first name, program and script.

        The key is that of the program without its names, so that a later program may differ in them.
        """

    def workload(self, key: str) -> Workload: ...

    def workloads(self, keys: Collection[str]) -> list[Workload]:
        """Those of these keys that are stored, by key."""

    def put_target(self, key: str, description: str) -> Target:
        """Store a target; Conflict where the key is known with another description."""

    def target(self, key: str) -> Target: ...

    def targets(self, keys: Collection[str]) -> list[Target]:
        """Those of these keys that are stored, by key."""

    def put_hardware(self, key: str, facts: str) -> Hardware:
        """Store a kind of hardware; of a known one the facts are replaced: they are no part of the key."""

    def hardware(self, key: str) -> Hardware: ...

    def hardwares(self) -> list[Hardware]:
        """All kinds that were ever reported, by first report; by key within one millisecond."""


class JobStore(Protocol):
    """Jobs. Each change of a job's state adds an event: kind `state`, data {"state": …, "reason": …}."""

    def create_job(self, job: NewJob) -> Job:
        """A new job in state `queued`; its workload, target and hardware (if given) were put before."""

    def job(self, job_id: str) -> Job: ...

    def jobs(self, state: JobState | None = None, after: str | None = None, limit: int = 50) -> Page[Job]:
        """Newest first. `after` is `Page.next`: pages stay stable while jobs are created."""

    def unfinished_jobs(self, origin: Origin | None = None) -> list[Job]:
        """Jobs in no final state, oldest first; a server restarts the searches of those of origin `http`."""

    def overdue_jobs(self) -> list[Job]:
        """Waiting jobs that have waited longer than their `worker_wait`."""

    def bind_hardware(self, job_id: str, hardware: str) -> Job:
        """Bind a job whose hardware is None. Bound to the same already: no effect; to another: Conflict."""

    def begin_search(self, job_id: str, process: str = "") -> int:
        """Raise the job's epoch and return it: from now on writes with an older one raise StaleSearch.

        A queued job becomes `running` and gets `started_at`; what was noted is over. `process` (the text of a
        ProcessIdentity) says who tunes a local job, so that `sweep` can tell that it is gone. JobOver where
        the job has ended, Conflict where it is paused.
        """

    def set_waiting(self, job_id: str, reason: str) -> Job:
        """Queued or running becomes `waiting`; `waiting_since` keeps its first value. Else no effect."""

    def set_running(self, job_id: str) -> Job:
        """`waiting` becomes `running`; else no effect."""

    def note(self, job_id: str, reason: str) -> Job:
        """Say why a queued or running job does not get on; "" once it does. Else no effect."""

    def finish_job(self, job_id: str, epoch: int | None, state: FinalJobState, reason: str) -> Job:
        """End the job; its trials that nobody has started become `cancelled`.

        A started one still takes its result; it becomes `cancelled` when its lease ends without one. A job
        that has ended already stays as it is, so read the answer. StaleSearch for an old epoch; None: the
        service decides, not a search.
        """

    def cancel_job(self, job_id: str) -> Job:
        """`finish_job` as `cancelled`, whoever searches."""

    def add_event(self, job_id: str, kind: str, data: str, epoch: int | None = None) -> int:
        """Append an event and return its `seq`: 1, 2, 3 … without gaps within the job. StaleSearch for an old
        epoch; None: it is no search that tells."""

    def events(self, job_id: str, after: int = 0, limit: int = 500) -> list[Event]:
        """Events with a `seq` above `after`, in order."""

    def last_event(self, job_id: str, kind: str) -> Event | None:
        """The newest event of a kind, if there is one."""


class TrialStore(Protocol):
    def add_trials(self, job_id: str, epoch: int, trials: Sequence[NewTrial]) -> list[Trial]:
        """Store candidates to be measured and return their trials, in the given order.

        A number that exists with the same candidate_key is returned as it stands, so a call may be
        repeated. With another one, or with a candidate that the job has under another number: Conflict, and
        none is stored. StaleSearch, JobOver.
        """

    def trials(self, job_id: str, after_number: int = -1, limit: int = 1000) -> list[Trial]:
        """Trials with a number above `after_number`, by number."""

    def trial(self, trial_id: str) -> Trial: ...

    def trial_counts(self, job_id: str) -> dict[str, int]:
        """Trials of each outcome (0 included), and `settled`: those neither pending nor started."""

    def top_trials(self, job_id: str, limit: int = 1) -> list[Trial]:
        """The fastest checked trials (outcome `ok`) that are believed, the fastest first; among equals the
        lowest number."""

    def settle_local(self, job_id: str, epoch: int, trial_number: int, settlement: Settlement) -> Trial:
        """Store a result measured by the process that searches (`tw.tune`), under the rules of `settle`.

        StaleSearch, JobOver, SettlementMismatch.
        """


class OutsideStore(Protocol):
    """Trials of jobs of origin `outside`, which people or other programs measure. Nothing of it expires."""

    def hand_out(self, job_id: str, holder: str, count: int = 1) -> list[Trial]:
        """Up to `count` trials for `holder`: those that it was given and that have no result, then pending
        ones, which become `started`; by number. A paused job hands out no new ones. JobOver; Conflict for a
        job of another origin."""

    def tell_outside(self, job_id: str, number: int, settlement: Settlement) -> Trial:
        """Store the result of a trial, handed out or not, under the rules of `settle`; the same one may be
        told again. SettlementMismatch for another one, JobOver, Conflict."""


class HistoryStore(Protocol):
    """What earlier searches leave to later ones. No call reads more than its limit, whatever is stored."""

    def past_trials(
        self, workload: str, target: str, hardware: str, codegen_version: str, limit: int = 10_000
    ) -> list[PastTrial]:
        """Trials of exactly this key and version that have a result, which is no loss of a worker and no
        cancellation, are believed and were not retired: those of the newest jobs, the oldest job first, by
        number."""

    def past_searches(self, hardware: str, structure: str, limit: int = 32) -> list[PastSearch]:
        """Keys with a best-known schedule: of workloads of this structure first, then any; within each, this
        hardware before others, and what was improved last before the rest."""

    def sampled_trials(self, search: PastSearch, fastest: int, first: int) -> list[PastTrial]:
        """Of each of the four newest jobs of a key: the `fastest` trials, and those with a result among the
        `first` numbers, which no result has led to. In order of job and number, each once."""

    def past_trials_by_id(self, ids: Sequence[str]) -> list[PastTrial]:
        """The trials that still exist and have a result, in the order of `ids`."""

    def put_features(self, features: Mapping[str, bytes], feature_schema: int) -> None:
        """Replace the feature rows of trials, by id, by those of another schema: measured once, described
        anew. NotFound, and then none is replaced."""

    def put_structure(self, workload: str, structure: str) -> None:
        """Say what the workload shares with those that differ in their extents alone."""

    def put_warm_start(
        self, job_id: str, epoch: int, snapshot: str, known: int = 0, best: str | None = None
    ) -> str:
        """Keep what a search began with (JSON), and how many trials of its budget were `known`; returns what
        is kept: the first that was put. StaleSearch, JobOver."""

    def warm_start(self, job_id: str) -> str | None:
        """What `put_warm_start` keeps; None where nothing was put."""

    def time_again(
        self, job_id: str, epoch: int, turn: int, trials: Sequence[str], device: str | None = None
    ) -> None:
        """Have workers time these trials, by id, once more, in this order, ahead of other work: round `turn`;
        with `device`, that worker alone. They are of this job, or of another one of the same key.

        What a trial was settled with stays as it is; no best is given to beat. Asked for a turn again: no
        effect; for another turn while one is pending: that one becomes `cancelled`. Once the job has ended
        nobody times it any more. InvalidValue for a trial without a time of its own or of another key,
        StaleSearch, JobOver.
        """

    def retimings(self, job_id: str) -> list[Retiming]:
        """All rounds of a job, by turn, in the order that was asked for."""


class TokenStore(Protocol):
    def create_token(
        self,
        name: str,
        scopes: Sequence[Scope],
        pool: str | None = None,
        expires_in: float | None = None,
        limits: TokenLimits = NO_LIMITS,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is not stored: it cannot be shown again."""

    def token_by_secret(self, secret: str) -> Token | None:
        """The token with this secret; None where there is none, or it was revoked or has expired."""

    def tokens(self) -> list[Token]:
        """All tokens, revoked and expired ones included, oldest first."""

    def tokens_page(self, after: str | None = None, limit: int = 50) -> Page[Token]:
        """The same in pages; `after` is `Page.next`."""

    def revoke_token(self, token_id: str) -> Token:
        """From now on its secret opens nothing. May be repeated."""


class Store(
    CatalogStore,
    JobStore,
    JobControlStore,
    SummaryStore,
    TrialStore,
    HistoryStore,
    OutsideStore,
    ScheduleStore,
    FleetStore,
    HealthStore,
    TokenStore,
    ServiceStore,
    BuildStore,
    RetentionStore,
    Protocol,
):
    """Everything a service, a search and `tw.tune` keep."""

    def ping(self) -> None:
        """Raises StoreUnavailable unless the database answers and is still the one that was opened."""

    def serving(self, who: str) -> AbstractContextManager[None]:
        """Be the only server of this database within the context, which ends with the process, too.

        Conflict where another is, naming it by what it gave as `who`; StoreUnavailable where the database can
        only be read.
        """

    def leadership(self, silence: float) -> Leadership:
        """What decides which of several processes leads: of one file it is the one that is `serving`; of a
        database on a server, one that asked last more than `silence` seconds ago leads no more."""

    def mark(self) -> Mark:
        """A text that no earlier call gave once anything in the database has changed since; while nothing
        has, the same one again. What was acknowledged before the call counts. It costs less than a query."""

    def schema_version(self) -> str: ...

    def now(self) -> float:
        """The database's clock, in seconds since the epoch."""

    def close(self) -> None:
        """Give up all connections. May be repeated; no other method may be called after it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
