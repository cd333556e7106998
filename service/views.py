"""What the API answers, as models: the server fills them, the client reads them back.

A reader ignores keys it does not know, so that a newer server can say more.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class VersionView(View):
    """What this server is. `service` is the word by which a client knows that it talks to tilewright."""

    service: str
    version: str
    protocol: int
    codegen: str


class HealthView(View):
    status: str


class FaultView(View):
    """One wrong place: a JSON pointer into the body, or the name of a parameter or header."""

    pointer: str | None = None
    parameter: str | None = None
    detail: str


class ProblemView(View):
    """An error (RFC 9457, application/problem+json). `code` is stable; `detail` is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    trace_id: str
    errors: list[FaultView] = Field(default_factory=list)


class WorkloadView(View):
    """A program: its key, its printed form, and the floating-point operations of one call where counted."""

    key: str
    name: str
    script: str
    flops: float | None = None


class TargetView(View):
    key: str
    description: dict[str, Any]


class BudgetView(View):
    """A search ends with whatever comes first: so many trials, seconds, a schedule that takes at most
    `target_seconds`, or `patience` trials in a row without a new best."""

    trials: int
    seconds: float | None = None
    target_seconds: float | None = None
    patience: int | None = None


class ProgressView(View):
    """How far a search is. `done` of `asked` trials have an outcome, `known` were measured by earlier jobs;
    `eta_seconds` is an estimate by the pace of the newest results, if any: none while the job is paused or
    waits for workers."""

    done: int = 0
    asked: int = 0
    measured: int = 0
    known: int = 0
    failures: dict[str, int] = Field(default_factory=dict)
    best_seconds: float | None = None
    best_gflops: float | None = None
    elapsed_seconds: float = 0.0
    eta_seconds: float | None = None


class BestOfJob(View):
    """The fastest checked trial of a job so far; `job` names the earlier one that it was known from."""

    trial: int
    job: str
    seconds: float
    gflops: float | None = None
    trace: dict[str, Any]


class ModelView(View):
    """How well the cost model predicted trials before they were measured; None where that cannot be told.

    `rank_correlation` is Spearman's, -1 to 1; `pairwise_accuracy` the share of pairs of a round in the right
    order; `top_recall` the share of each round's fastest quarter that it had in its own. A model that is
    worse than chance is not `trusted`. `metrics` names the library.
    """

    trials: int
    rank_correlation: float | None = None
    pairwise_accuracy: float | None = None
    top_recall: float | None = None
    trusted: bool = True
    distrusted_rounds: int = 0
    metrics: str = ""


class TimeView(View):
    """Seconds of a finished search, by what they were spent on. `build` and `run` are those of all workers
    together."""

    generate: float = 0.0
    features: float = 0.0
    train: float = 0.0
    propose: float = 0.0
    load: float = 0.0
    build: float = 0.0
    run: float = 0.0
    other: float = 0.0


class DriftView(View):
    """A worker that has become slower or faster since its first trial of a job: seconds of its baseline
    kernel then and now, and the change as a ratio less 1."""

    worker: str
    name: str
    first_seconds: float
    last_seconds: float
    drift: float
    message: str


class JobView(View):
    """`owner`: the token that made it and may change it; none: everyone who may write jobs. `stalled`: since
    when a running job does not get on, and what it waits for; `warnings`: what to know about the results."""

    id: str
    state: str
    reason: str = ""
    workload: WorkloadView
    target: TargetView
    hardware: str | None = None
    budget: BudgetView
    seed: int
    strategy: str
    batch: int
    worker_wait: float
    history: str = "use"
    owner: str | None = None
    created_at: float
    finished_at: float | None = None
    progress: ProgressView
    best: BestOfJob | None = None
    model: ModelView | None = None
    time: TimeView | None = None
    pool: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    priority: int = 0
    stalled: str | None = None
    warnings: list[str] = Field(default_factory=list)
    drift: list[DriftView] = Field(default_factory=list)

    @property
    def finished(self) -> bool:
        return self.state in FINISHED


class JobsView(View):
    jobs: list[JobView]
    next_page_token: str | None = None


class BatchView(View):
    """Jobs that were created together, in the order of the request."""

    jobs: list[JobView]


class ValidationView(View):
    """What a job would be, of a request with `validate_only`."""

    valid: bool
    workload: WorkloadView
    target: TargetView
    hardware: str | None
    budget: BudgetView


class TrialView(View):
    """One candidate and what came of it. `outcome`: pending, started, ok, censored, or a failure kind.

    `predicted`: the score that the cost model gave it before it was measured; `origin`: what proposed it;
    `disturbed`: `disturbance`, such as other work, disturbed every sample. `baseline`: seconds of the
    device's baseline kernel right before and after the samples, and `baseline_ratio` the trial's seconds in
    units of their mean.
    """

    number: int
    outcome: str
    candidate: str
    sketch: str
    trace: dict[str, Any]
    seconds: float | None = None
    samples: list[float] = Field(default_factory=list)
    error: float | None = None
    message: str = ""
    detail: dict[str, Any] | None = None
    worker: str | None = None
    attempt: int = 0
    batch: int = 0
    predicted: float | None = None
    origin: str = ""
    disturbed: bool = False
    disturbance: str = ""
    baseline: list[float] = Field(default_factory=list)
    baseline_ratio: float | None = None


class AskedView(View):
    """Trials to be measured outside; none while there is nothing to measure. `state` is the job's."""

    trials: list[TrialView]
    state: str
    reason: str = ""


class TrialsView(View):
    trials: list[TrialView]
    next_page_token: str | None = None


class EventView(View):
    """One entry of a job's history; `seq` grows, and is the id of the server-sent event."""

    seq: int
    kind: str
    data: dict[str, Any]


class WorkerView(View):
    """A worker. `state`: registering, online, busy, draining, paused, quarantined, offline or retired, since
    `state_at`, with the `reason`; a pause ends at `until`. It holds `lease` and runs `trial` now. `settled`
    results were taken from it, `failed` of them failures."""

    id: str
    name: str
    state: str
    reason: str = ""
    state_at: float | None = None
    until: float | None = None
    hardware: str
    facts: dict[str, Any]
    labels: dict[str, str]
    pool: str | None = None
    versions: dict[str, str]
    protocol: int = 1
    lease: str | None = None
    trial: str | None = None
    settled: int = 0
    failed: int = 0
    registered_at: float | None = None
    seen_seconds_ago: float | None = None
    run_only: bool = False


class HealthCheckView(View):
    """What golden kernels showed of a worker: each part with its seconds, spread, norm and limit."""

    at: float
    occasion: str
    verdict: str
    reason: str = ""
    parts: list[dict[str, Any]]


class HealthChecksView(View):
    checks: list[HealthCheckView]


class WorkerChangeView(View):
    """A worker after a verb. Of the best-known schedules that rested on it, `replaced` have another trial
    now, and `lost` have none."""

    worker: WorkerView
    replaced: int = 0
    lost: int = 0


class CrashView(View):
    """A candidate with which workers of a kind of hardware were lost: `losses` times, last while `trial` ran.
    Where it is `barred`, it is not run there any more until somebody clears it."""

    candidate: str
    hardware: str
    losses: int
    barred: bool
    last_at: float
    trial: str | None = None


class CrashesView(View):
    crashes: list[CrashView]


class WorkersView(View):
    workers: list[WorkerView]


class OperatorView(View):
    name: str
    doc: str = ""
    schema_: dict[str, Any] = Field(alias="schema")


class OperatorsView(View):
    operators: list[OperatorView]


class TokenView(View):
    """A token without its value."""

    id: str
    name: str
    scopes: list[str]
    pool: str | None = None
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    max_jobs: int | None = None
    max_trials: int | None = None
    rate: float | None = None


class OwnTokenView(View):
    """The token of a request; `now` is the server's time."""

    token: TokenView | None
    now: float


class NewTokenView(View):
    """A new token: the only time that its value is shown."""

    token: TokenView
    value: str


class TokensView(View):
    tokens: list[TokenView]
    next_page_token: str | None = None


class AuditEntryView(View):
    """Who did what to what, from where, and what came of it: `done`, or the code of the problem.

    `actor` is a token's id, `anonymous` or `command line`.
    """

    seq: int
    at: float
    actor: str
    name: str
    address: str
    verb: str
    subject: str
    outcome: str
    trace_id: str


class AuditView(View):
    entries: list[AuditEntryView]
    next_page_token: str | None = None


FINISHED = ("completed", "exhausted", "cancelled", "failed")
