"""`tilewright jobs`: look at, follow, pause, resume, extend and cancel the jobs of a server."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated

import typer

from ...db.words import LIMITS
from ..views import JobView
from .exits import CommandError, Exit
from .options import FINITE, AsJson
from .output import show, show_json_line, table
from .progress import describe, follow, speed, state_line
from .report import model_line, time_line
from .where import Server, takes

app = typer.Typer(name="jobs", help="The tuning jobs of a server.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(help="Such as job_0123456789ab.", show_default=False)]


@app.command("list")
@takes(Server)
def list_jobs(
    *,
    where: Server,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Jobs, the newest first."""
    with where.client() as client:
        jobs = list(islice(client.jobs(state), limit))

    def human() -> list[str]:
        return table(["job", "workload", "state", "progress"], [_row(job) for job in jobs])

    show([job.model_dump() for job in jobs], as_json, human)


@app.command("show")
@takes(Server)
def show_job(
    job: JobId,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """One job: state, progress, budget, best so far."""
    with where.client() as client:
        view = client.job(_checked(job))
    show(view.model_dump(), as_json, lambda: _details(view))


def _verb(name: str, does: str) -> None:
    """A command that changes a job by the client's method of that name."""

    @app.command(name, help=does)
    @takes(Server)
    def change(
        job: JobId,
        *,
        where: Server,
        as_json: AsJson = False,
    ) -> None:
        with where.client() as client:
            view = getattr(client, name)(_checked(job))
        show(view.model_dump(), as_json, lambda: state_line(view))


_verb("cancel", "End a job and keep what it found. A job that has ended stays as it is.")
_verb("pause", "Measure no more of a job until it is resumed. Its seconds stop, and it survives restarts.")
_verb("resume", "Let a paused, cancelled or failed job go on from what it has measured.")


@app.command("extend")
@takes(Server)
def extend_job(
    job: JobId,
    trials: Annotated[int | None, typer.Option(min=1, help="Candidates to measure, all in all.")] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, max=FINITE, help="Time limit, all in all.")
    ] = None,
    target_seconds: Annotated[
        float | None,
        typer.Option(min=1e-12, max=FINITE, help="A schedule that takes at most so long is good enough."),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="So many trials in a row without a new best end the search.")
    ] = None,
    lift: Annotated[
        list[str] | None, typer.Option(help="A limit to do without: seconds, target_seconds or patience.")
    ] = None,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Give a job a larger budget, in new totals, with which it goes on; a paused one stays paused."""
    lifted = [_limit(name) for name in lift or ()]
    with where.client() as client:
        view = client.extend(
            _checked(job),
            trials=trials,
            seconds=seconds,
            target_seconds=target_seconds,
            patience=patience,
            lift=lifted,
        )
    show(view.model_dump(), as_json, lambda: [state_line(view), f"  budget    {_budget(view)}"])


@app.command("ask")
@takes(Server)
def ask_trials(
    job: JobId,
    count: Annotated[int, typer.Option(min=1, max=64, help="At most so many.")] = 1,
    holder: Annotated[str, typer.Option(help="Who measures: the same name is given the same again.")] = "",
    wait: Annotated[float, typer.Option(min=0, max=60, help="Seconds to wait for one.")] = 0.0,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Trials of a job that is measured outside, for you to measure: `tell` what came of them, whenever."""
    with where.client() as client:
        trials = client.ask(_checked(job), count, holder=holder, wait=wait)

    def human() -> list[str]:
        from .tune import script_of

        of = {trial.number: script_of(json.dumps(trial.trace)) for trial in trials}
        return [line for number, script in of.items() for line in (f"# trial {number}", *script)]

    show([trial.model_dump() for trial in trials], as_json, human)


@app.command("tell")
@takes(Server)
def tell_trial(
    job: JobId,
    number: Annotated[int, typer.Argument(min=0, help="The trial.", show_default=False)],
    seconds: Annotated[float | None, typer.Option(min=0.0, max=FINITE, help="Seconds of one call.")] = None,
    failure: Annotated[str | None, typer.Option(help="How it failed, such as run_error.")] = None,
    message: Annotated[str, typer.Option(help="With --failure: what happened.")] = "",
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """What came of a trial of a job that is measured outside. The same may be told again."""
    with where.client() as client:
        trial = client.tell(_checked(job), number, seconds=seconds, failure=failure, message=message)
    show(trial.model_dump(), as_json, lambda: f"trial {trial.number} of {job}: {trial.outcome}")


@app.command("watch")
@takes(Server)
def watch_job(
    job: JobId,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it ends: trials done of the budget, best so far, failures by kind, time left.

    With --json each event is one line on stdout. Ends with 1 when the job failed.
    """
    with where.client() as client:
        if as_json:
            for event in client.events(_checked(job)):
                show_json_line(event.model_dump())
            view = client.job(job)
        else:
            view = follow(client, _checked(job))
            show(view.model_dump(), False, lambda: _details(view))
    if view.state == "failed":
        raise CommandError(f"{view.id} failed: {view.reason}")


def _checked(job: str) -> str:
    if not job.replace("_", "").replace("-", "").isalnum():
        raise CommandError(f"{job!r} is no job's id; they look like job_0123456789ab", Exit.USAGE)
    return job


def _row(job: JobView) -> list[str]:
    state = f"{job.state} ({job.reason})" if job.reason else job.state
    return [job.id, job.workload.name, state, describe(job.progress)]


def _limit(name: str) -> str:
    if name not in LIMITS:
        raise CommandError(f"--lift {name}: is no limit; the limits are {', '.join(LIMITS)}", Exit.USAGE)
    return name


def _budget(job: JobView) -> str:
    budget = f"{job.budget.trials} trials"
    if job.budget.seconds is not None:
        budget += f", {job.budget.seconds:g} s"
    if job.budget.target_seconds is not None:
        budget += f", target {job.budget.target_seconds:g} s"
    if job.budget.patience is not None:
        budget += f", patience {job.budget.patience}"
    return budget


def _asked(job: JobView) -> str:
    """What the job asks of its workers, if anything."""
    parts = [f"of pool {job.pool}"] if job.pool is not None else []
    parts += [f"with {key}={value}" for key, value in sorted(job.labels.items())]
    parts += [f"priority {job.priority}"] if job.priority else []
    return ", ".join(parts)


def _details(job: JobView) -> list[str]:
    lines = [
        state_line(job),
        f"  workload  {job.workload.key}",
        f"  target    {job.target.key}",
        f"  hardware  {job.hardware or 'not chosen yet'}",
        f"  budget    {_budget(job)}, seed {job.seed}, {job.strategy}, batches of {job.batch}",
        f"  progress  {describe(job.progress)}",
    ]
    if asked := _asked(job):
        lines.append(f"  workers   {asked}")
    if job.stalled is not None:
        lines.append(f"  {job.stalled}")
    lines += [f"  warning   {warning}" for warning in job.warnings]
    if job.best is not None:
        lines.append(f"  best      {speed(job.best.seconds, job.best.gflops)} in trial {job.best.trial}")
    if job.model is not None:
        lines.append(f"  model     {model_line(job.model)}")
    if job.time is not None:
        lines.append(f"  time      {time_line(job.time)}")
    return lines
