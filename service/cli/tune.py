"""`tilewright tune`: search for a workload's best schedule, here or on a server."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ...db.words import DEFAULT_BATCH, HISTORIES, MAX_PRIORITY, MOST_BATCH
from ..views import JobView, ModelView, TimeView
from .exits import CommandError, Exit
from .options import FINITE, AsJson, Db, InsecureHttp, TokenFile, Url, database_url, open_client, settings_of
from .output import say, show
from .progress import follow, speed, state_line
from .report import model_line, time_line
from .tuning_here import tuning_here
from .worker_options import parse_labels
from .workload_argument import Workload, func_of, spec_of

if TYPE_CHECKING:
    from ...tuner.record import TuningRecord
    from ...tuner.snapshot import Snapshot

Target = Annotated[str, typer.Option(help="Such as llvm, or 'llvm -mcpu=x86-64-v3'.")]


def tune(
    workload: Workload,
    target: Target = "llvm",
    trials: Annotated[int, typer.Option(min=1, help="Candidates to measure.")] = 64,
    share: Annotated[
        float | None,
        typer.Option(help="Instead of --trials: this part (up to 1) of all legal schedules, if not many."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, max=FINITE, help="Time limit of the search.")
    ] = None,
    target_seconds: Annotated[
        float | None,
        typer.Option(min=1e-12, max=FINITE, help="A schedule that takes at most so long is good enough."),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="So many trials in a row without a new best end the search.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same search.")] = 0,
    strategy: Annotated[
        str, typer.Option(help="annealing, evolutionary, grid, guided, local or random.")
    ] = "guided",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the same search where it was interrupted or killed.")
    ] = False,
    history: Annotated[
        str, typer.Option(help="use: what was measured before counts as done; ignore: measure anew.")
    ] = "use",
    suggest: Annotated[
        Path | None,
        typer.Option(help="A JSON file with schedules to try first: a trace, or a list of them."),
    ] = None,
    hardware: Annotated[str | None, typer.Option(help="With --url: the hardware key to measure on.")] = None,
    pool: Annotated[str | None, typer.Option(help="With --url: only workers of this pool measure.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="With --url: key=value that a worker must have. May be given several times."),
    ] = None,
    priority: Annotated[
        int,
        typer.Option(
            min=-MAX_PRIORITY, max=MAX_PRIORITY, help="With --url: each step is twice the share of workers."
        ),
    ] = 0,
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_BATCH,
            help="With --url: candidates proposed at a time; half as many as the workers.",
        ),
    ] = DEFAULT_BATCH,
    url: Url = None,
    token_file: TokenFile = None,
    insecure_http: InsecureHttp = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Search for the fastest schedule of WORKLOAD.

    With --url the server's workers measure and the job is watched; Ctrl-C stops watching, not the job.
    Without it this machine measures, and the trials are recorded in the database; a search that was stopped
    goes on with --resume. Prints the best schedule as Python.
    """
    if history not in HISTORIES:
        raise CommandError(f"--history is {' or '.join(HISTORIES)}, not {history!r}", Exit.USAGE)
    suggestions = _suggestions(suggest)
    if url is None:
        limits = _Limits(trials, share, seconds, target_seconds, patience, history, suggestions)
        record = _tune_here(workload, target, limits, seed, strategy, resume, database_url(db))
        show(_record_json(record), as_json, lambda: _record_text(record))
        if record.trace is None:
            raise CommandError(f"no schedule was found: {record.reason}")
        return
    if share is not None:
        raise CommandError("--share is for tuning here; give a server a number of --trials", Exit.USAGE)
    if resume:
        raise CommandError(
            "--resume is for tuning here; see `tilewright jobs resume` for a server", Exit.USAGE
        )
    if db is not None:
        raise CommandError("--db is for tuning here, --url for a server: give one of them", Exit.USAGE)
    settings = settings_of(url=url, token_file=token_file, insecure_http=insecure_http)
    with open_client(settings) as client:
        job = client.submit(
            spec_of(workload),
            target=target,
            trials=trials,
            seconds=seconds,
            target_seconds=target_seconds,
            patience=patience,
            hardware=hardware,
            seed=seed,
            strategy=strategy,
            history=history,
            suggestions=suggestions,
            pool=pool,
            labels=parse_labels(label),
            priority=priority,
            batch=batch,
        )
        cancel = f"tilewright jobs cancel {job.id} --url {client.url}"
        say(f"{job.id} is submitted to {client.url}; `{cancel}` ends it")
        job = follow(client, job.id)
    show(job.model_dump(), as_json, lambda: _job_text(job))
    if job.best is None:
        raise CommandError(f"no schedule was found: {job.reason or job.state}")


class _Limits(NamedTuple):
    """What ends the search, and what it begins with."""

    trials: int
    share: float | None
    seconds: float | None
    target_seconds: float | None
    patience: int | None
    history: str
    suggestions: list[dict[str, Any]]


def _suggestions(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    try:
        said = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"--suggest {path}: {error}", Exit.USAGE) from error
    found = said if isinstance(said, list) else [said]
    if not all(isinstance(one, dict) for one in found):
        raise CommandError(f"--suggest {path} holds neither a JSON object nor a list of them", Exit.USAGE)
    return found


def _tune_here(
    workload: str, target: str, limits: _Limits, seed: int, strategy: str, resume: bool, db: str
) -> TuningRecord:
    func = func_of(workload)
    with tuning_here(db) as store:
        from ...tuner.progress import describe
        from ...tuner.tune import tune as search

        seen: deque[Snapshot] = deque(maxlen=1)
        try:
            return search(
                func,
                target,
                **limits._asdict(),
                store=store,
                resume=resume,
                seed=seed,
                strategy=strategy,
                observer=seen.append,
            )
        except KeyboardInterrupt:
            words = describe(seen[-1]) if seen else "before the first trial ended"
            say(f"interrupted: {words}; what was measured is kept in {db}, and --resume goes on")
            raise typer.Exit(Exit.INTERRUPTED) from None


def _record_json(record: TuningRecord) -> dict[str, Any]:
    return {
        "workload": record.workload,
        "target": record.target,
        "hardware": record.hardware,
        "state": record.state,
        "reason": record.reason,
        "seconds": record.seconds,
        "gflops": record.gflops,
        "samples": list(record.samples),
        "trace": None if record.trace is None else record.trace.to_json(),
        "trial_count": record.trial_count,
        "known_count": record.known_count,
        "failures": dict(record.failures),
        "wall_seconds": record.wall_seconds,
        "split": record.split.to_json(),
        "model": record.model.to_json(),
        "space_errors": dict(record.space_errors),
        "job": record.job,
    }


def _record_text(record: TuningRecord) -> list[str]:
    if record.trace is None or record.seconds is None:
        return [f"{record.state}: {record.reason}"]
    return [
        f"# {speed(record.seconds, record.gflops)} after {record.trial_count} trials: {record.reason}",
        f"# cost model: {model_line(ModelView(**record.model.to_json()))}",
        f"# time: {time_line(TimeView(**record.split.to_json()))}",
        *(f"# space: {message}" for message in record.space_errors.values()),
        *record.trace.script().splitlines(),
    ]


def _job_text(job: JobView) -> list[str]:
    if job.best is None:
        return [state_line(job)]
    lines = [
        f"# {speed(job.best.seconds, job.best.gflops)} after {job.progress.done} trials, {state_line(job)}"
    ]
    if job.model is not None:
        lines.append(f"# cost model: {model_line(job.model)}")
    if job.time is not None:
        lines.append(f"# time: {time_line(job.time)}")
    return lines + script_of(json.dumps(job.best.trace))


def script_of(trace: str) -> list[str]:
    """A stored trace as the lines of Python that a person would write."""
    from ...compiler.schedule import Trace

    return Trace.from_json(json.loads(trace)).script().splitlines()
