"""What a client can ask of a server: each method's parameters, calls and answer, for both clients."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..db.words import DEFAULT_BATCH
from .calls import Call, Flow, Pages, change, get
from .views import (
    AskedView,
    AuditEntryView,
    AuditView,
    BatchView,
    JobsView,
    JobView,
    NewTokenView,
    OperatorsView,
    OperatorView,
    TokensView,
    TokenView,
    TrialsView,
    TrialView,
    ValidationView,
    VersionView,
    WorkersView,
    WorkerView,
)

_WAIT_SLICE = 20.0


def version() -> Flow[VersionView]:
    """What the server is."""
    return VersionView.model_validate((yield get("/version")).json())


def submit(
    workload: Mapping[str, Any],
    *,
    target: str | Mapping[str, Any] = "llvm",
    trials: int = 64,
    seconds: float | None = None,
    target_seconds: float | None = None,
    patience: int | None = None,
    hardware: str | None = None,
    seed: int = 0,
    strategy: str = "guided",
    worker_wait: float | None = None,
    history: str = "use",
    batch: int = DEFAULT_BATCH,
    suggestions: Sequence[Mapping[str, Any]] = (),
    measure: str = "workers",
    pool: str | None = None,
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
) -> Flow[JobView]:
    """Create a job. `history` "ignore": measure anew what was measured before. `suggestions` are tried
    first: JSON of traces, or `{"sketch": name, "knobs": {name: value}}`. `measure` "outside": whoever calls
    `ask` and `tell` measures. `batch` candidates are proposed at a time, and at most twice as many measured
    at once. Only workers of the `pool` that have all the `labels` measure it; each step of
    `priority` is twice the share among your own jobs."""
    budget = {"trials": trials, "seconds": seconds, "target_seconds": target_seconds, "patience": patience}
    body = _job(workload, target, budget)
    body |= {"hardware": hardware, "seed": seed, "strategy": strategy, "worker_wait": worker_wait}
    body |= {"history": history, "suggestions": [dict(one) for one in suggestions], "measure": measure}
    body |= {"pool": pool, "labels": dict(labels or {}), "priority": priority, "batch": batch}
    return JobView.model_validate((yield change("/v1/jobs", body)).json())


def submit_all(jobs: Sequence[Mapping[str, Any]]) -> Flow[list[JobView]]:
    """Create all of these jobs or none: each is a body of `POST /v1/jobs`, with a budget of its own."""
    answer = yield change("/v1/jobs:batch", {"jobs": [dict(job) for job in jobs]})
    return BatchView.model_validate(answer.json()).jobs


def validate(
    workload: Mapping[str, Any], *, target: str | Mapping[str, Any] = "llvm", trials: int = 64
) -> Flow[ValidationView]:
    """What `submit` would create, or the ApiError it would raise; creates nothing."""
    body = {**_job(workload, target, {"trials": trials}), "validate_only": True}
    return ValidationView.model_validate((yield Call("POST", "/v1/jobs", body, idempotent=True)).json())


def job(job: str, *, wait: float | None = None) -> Flow[JobView]:
    """The job; with `wait`, as soon as it is finished, or as it stands after so many seconds."""
    path = f"/v1/jobs/{segment(job)}"
    if wait is None:
        return JobView.model_validate((yield get(path)).json())
    deadline = time.monotonic() + wait
    while True:
        part = max(0.0, min(_WAIT_SLICE, deadline - time.monotonic()))
        view = JobView.model_validate((yield get(path, {"wait": f"{part:.3f}s"}, part)).json())
        if view.finished or time.monotonic() >= deadline:
            return view


def jobs(state: str | None = None) -> Pages[JobView]:
    """All jobs, the newest first, page by page."""

    def read(said: Any) -> tuple[list[JobView], str | None]:
        page = JobsView.model_validate(said)
        return page.jobs, page.next_page_token

    return Pages(lambda token: get("/v1/jobs", {"state": state, "page_token": token}), read)


def trials(job: str) -> Pages[TrialView]:
    """The trials of a job in order, page by page."""
    path = f"/v1/jobs/{segment(job)}/trials"

    def read(said: Any) -> tuple[list[TrialView], str | None]:
        page = TrialsView.model_validate(said)
        return page.trials, page.next_page_token

    return Pages(lambda token: get(path, {"page_token": token}), read)


def cancel(job: str) -> Flow[JobView]:
    """End a job and keep what it found. Cancelling a finished job changes nothing."""
    return JobView.model_validate((yield _act(job, "cancel")).json())


def pause(job: str) -> Flow[JobView]:
    """Give out no more candidates of a job; those that are being measured are kept, and the job's seconds
    stop. ApiError (409) for a job that is over."""
    return JobView.model_validate((yield _act(job, "pause")).json())


def resume(job: str) -> Flow[JobView]:
    """Let a paused, cancelled or failed job go on from what it has measured; one that is under way stays as
    it is. ApiError (409, `already-complete`) for one that is completed or exhausted: see `extend`."""
    return JobView.model_validate((yield _act(job, "resume")).json())


def extend(
    job: str,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    target_seconds: float | None = None,
    patience: int | None = None,
    lift: Collection[str] = (),
) -> Flow[JobView]:
    """Give a job a larger budget, in new totals, with which it goes on; a paused one stays paused.

    What is None stays; `lift` names limits that it has no longer. ApiError (422) for a budget that would end
    it earlier, 409 for one that it has used up already.
    """
    given = {"trials": trials, "seconds": seconds, "target_seconds": target_seconds, "patience": patience}
    budget = {name: value for name, value in given.items() if value is not None or name in lift}
    return JobView.model_validate((yield _act(job, "extend", {"budget": budget})).json())


def ask(job: str, count: int = 1, *, holder: str = "", wait: float = 0.0) -> Flow[list[TrialView]]:
    """Up to `count` trials of a job that is measured outside, for `holder` to measure: those that it was
    given and has not told, then new ones. None where there is none within `wait` seconds (at most 60), or the
    job is over."""
    answer = yield Call(
        "POST",
        f"/v1/jobs/{segment(job)}/trials:ask",
        {"count": count, "holder": holder},
        params={"wait": f"{wait:.3f}s"},
        extra=wait,
        idempotent=True,
    )
    return AskedView.model_validate(answer.json()).trials


def tell(
    job: str,
    number: int,
    *,
    seconds: float | None = None,
    failure: str | None = None,
    message: str = "",
    samples: Sequence[float] = (),
    error: float | None = None,
    codegen: str | None = None,
) -> Flow[TrialView]:
    """What came of trial `number`: `seconds` per call, or a kind of `failure` with a message. May be
    repeated. `error` of its output in tolerances and the `codegen` version that made the code are needed for
    it to become best-known."""
    failed = None if failure is None else {"kind": failure, "message": message}
    said = {"number": number, "seconds": seconds, "failure": failed, "samples": list(samples)}
    body = {**said, "error": error, "codegen": codegen}
    path = f"/v1/jobs/{segment(job)}/trials:tell"
    return TrialView.model_validate((yield Call("POST", path, body, idempotent=True)).json())


def operators() -> Flow[list[OperatorView]]:
    """The operators that a workload may name."""
    return OperatorsView.model_validate((yield get("/v1/operators")).json()).operators


def workers() -> Flow[list[WorkerView]]:
    """Who measures."""
    return WorkersView.model_validate((yield get("/v1/workers")).json()).workers


def create_token(
    name: str,
    scopes: Sequence[str],
    *,
    pool: str | None = None,
    expires_seconds: float | None = None,
    max_jobs: int | None = None,
    max_trials: int | None = None,
    rate: float | None = None,
) -> Flow[NewTokenView]:
    """Make a token; the answer alone carries its value. Where that was lost on its way, ApiError (409,
    `shown-once`) names the token, to be revoked."""
    body = {"name": name, "scopes": list(scopes), "pool": pool, "expires_seconds": expires_seconds}
    body |= {"max_jobs": max_jobs, "max_trials": max_trials, "rate": rate}
    return NewTokenView.model_validate((yield change("/v1/tokens", body)).json())


def tokens() -> Pages[TokenView]:
    """All tokens without their values, the oldest first."""

    def read(said: Any) -> tuple[list[TokenView], str | None]:
        page = TokensView.model_validate(said)
        return page.tokens, page.next_page_token

    return Pages(lambda token: get("/v1/tokens", {"page_token": token}), read)


def revoke_token(token: str) -> Flow[TokenView]:
    """From now on the token, named by its id, opens nothing."""
    return TokenView.model_validate((yield change(f"/v1/tokens/{segment(token)}:revoke")).json())


def audit(actor: str | None = None) -> Pages[AuditEntryView]:
    """Who changed what, the newest first."""

    def read(said: Any) -> tuple[list[AuditEntryView], str | None]:
        page = AuditView.model_validate(said)
        return page.entries, page.next_page_token

    return Pages(lambda token: get("/v1/audit", {"actor": actor, "page_token": token}), read)


def segment(name: str) -> str:
    """A name as one path segment: an id that a user mistyped must not reach another route."""
    if not name.strip(".") or not all(c.isalnum() or c in "_-." for c in name):
        raise ValueError(f"{name!r} is no id; ids look like job_0123456789ab")
    return name


def _act(job: str, verb: str, body: dict[str, Any] | None = None) -> Call:
    return change(f"/v1/jobs/{segment(job)}:{verb}", body)


def _job(
    workload: Mapping[str, Any], target: str | Mapping[str, Any], budget: Mapping[str, Any]
) -> dict[str, Any]:
    named = target if isinstance(target, str) else dict(target)
    return {"workload": dict(workload), "target": named, "budget": dict(budget)}
