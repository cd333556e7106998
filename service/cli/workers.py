"""`tilewright workers`: look at the workers of a server, and say what they are to do."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from ..durations import seconds_of
from ..views import WorkerChangeView, WorkerView
from .asking import confirm
from .exits import CommandError, Exit
from .options import AsJson
from .output import say, show, table
from .where import Server, takes

app = typer.Typer(name="workers", help="The workers of a server.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A worker's name or id.", show_default=False)]
Note = Annotated[str, typer.Option(help="Why: everyone who looks at the worker reads it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@app.command("list")
@takes(Server)
def list_workers(
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """All workers but removed ones, by name."""
    with where.client() as client:
        workers = client.workers()

    def human() -> list[str]:
        columns = ["name", "state", "pool", "labels", "hardware", "model", "seen", "reason"]
        return table(columns, [_row(worker) for worker in workers])

    show([worker.model_dump() for worker in workers], as_json, human)


@app.command("show")
@takes(Server)
def show_worker(
    worker: Name,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """One worker: state and reason, what it measures, what it is."""
    with where.client() as client:
        view = client.worker(worker)
    show(view.model_dump(), as_json, lambda: table(["", ""], _facts(view)))


@app.command("pause")
@takes(Server)
def pause(
    worker: Name,
    duration: Annotated[
        str | None, typer.Option("--for", help="How long, such as 30m; without it until it is resumed.")
    ] = None,
    note: Note = "",
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Give a worker no more candidates, for a while. The one that runs is finished, the rest given back."""
    seconds = None if duration is None else _seconds("--for", duration)
    with where.client() as client:
        _tell(client.pause_worker(worker, seconds=seconds, note=note), as_json)


@app.command("resume")
@takes(Server)
def resume(
    worker: Name,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Let a paused or draining worker measure again."""
    with where.client() as client:
        _tell(client.resume_worker(worker), as_json)


@app.command("drain")
@takes(Server)
def drain(
    worker: Name,
    note: Note = "",
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Have a worker finish the candidate that runs, give the rest back, and end: it becomes offline."""
    with where.client() as client:
        _tell(client.drain_worker(worker, note=note), as_json)


@app.command("quarantine")
@takes(Server)
def quarantine(
    worker: Name,
    note: Annotated[str, typer.Option(help="What is wrong with it.", show_default=False)],
    since: Annotated[
        str | None,
        typer.Option(help="Results of so long do not count, such as 2h; without it since it was last sound."),
    ] = None,
    yes: Yes = False,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Give a worker no more candidates, and let what it measured not count: the next best is served."""
    ago = None if since is None else _seconds("--since", since)
    which = "since it was last known to be sound" if since is None else f"in the last {since}"
    with where.client() as client:
        found = client.worker(worker)
        confirm(yes, f"Quarantine {found.name}? What it measured {which} will not count.")
        _tell(client.quarantine_worker(found.id, note, since_seconds=ago), as_json)


@app.command("release")
@takes(Server)
def release(
    worker: Name,
    restore_results: Annotated[
        bool, typer.Option("--restore-results", help="What it measured before counts again.")
    ] = False,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Let a quarantined worker measure again."""
    with where.client() as client:
        _tell(client.release_worker(worker, restore_results=restore_results), as_json)


@app.command("remove")
@takes(Server)
def remove(
    worker: Name,
    discard_results: Annotated[
        bool, typer.Option("--discard-results", help="Nothing that it ever measured counts any more.")
    ] = False,
    note: Note = "",
    yes: Yes = False,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """Retire a worker for good: its name attaches no more."""
    with where.client() as client:
        found = client.worker(worker)
        results = " Nothing that it ever measured will count." if discard_results else ""
        confirm(yes, f"Remove {found.name}? Its name cannot attach again.{results}")
        change = client.remove_worker(found.id, note=note, discard_results=discard_results)
        _tell(change, as_json)


def _tell(change: WorkerChangeView, as_json: bool) -> None:
    worker = change.worker
    if not as_json and (change.replaced or change.lost):
        say(
            f"best-known schedules that rested on {worker.name}: {change.replaced} have another trial now, "
            f"{change.lost} have none"
        )
    show(change.model_dump(), as_json, lambda: f"{worker.name}: {_state(worker)}")


def _seconds(option: str, text: str) -> float:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise CommandError(f"{option} {error}", Exit.USAGE) from error
    if seconds <= 0:
        raise CommandError(f"{option} must be longer than nothing", Exit.USAGE)
    return seconds


def _state(worker: WorkerView) -> str:
    return f"{worker.state} ({worker.reason})" if worker.reason else worker.state


def _row(worker: WorkerView) -> list[str]:
    return [
        worker.name,
        worker.state,
        worker.pool or "",
        _labels(worker),
        worker.hardware[:12],
        str(worker.facts.get("model_name") or ""),
        "" if worker.seen_seconds_ago is None else f"{worker.seen_seconds_ago:.0f} s ago",
        worker.reason,
    ]


def _labels(worker: WorkerView) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(worker.labels.items()))


def _facts(worker: WorkerView) -> list[list[str]]:
    rows = [
        ["name", worker.name],
        ["id", worker.id],
        ["state", _state(worker)],
        ["since", _moment(worker.state_at)],
        ["attached", _moment(worker.registered_at)],
        ["seen", "" if worker.seen_seconds_ago is None else f"{worker.seen_seconds_ago:.0f} s ago"],
        ["measures", worker.trial or worker.lease or "nothing"],
        ["results", f"{worker.settled}, {worker.failed} of them failures"],
        ["pool", worker.pool or "none"],
        ["labels", _labels(worker) or "none"],
        ["protocol", str(worker.protocol)],
        ["hardware key", worker.hardware],
    ]
    rows += [[f"hardware {key}", _plain(value)] for key, value in worker.facts.items()]
    return rows + [[f"version {key}", value] for key, value in worker.versions.items()]


def _moment(at: float | None) -> str:
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value)
    return "unknown" if value is None else str(value)
