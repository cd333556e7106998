"""`tilewright tune-tasks`: search for the best schedules of several workloads with one budget, here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .exits import CommandError, Exit
from .options import FINITE, AsJson, Db, database_url
from .output import say, show, table
from .progress import speed
from .tune import Target
from .tuning_here import tuning_here
from .workload_argument import func_of

if TYPE_CHECKING:
    from ...tuner.tasks_record import TaskResult, TasksRecord
    from ...tuner.weighted_task import WeightedTask

Tasks = Annotated[
    list[str],
    typer.Argument(
        help="Workloads as for `tune`, or a file.json with a list of tasks, each "
        '{"workload": …, "weight": 1, "target": …, "name": …, "trials": …, "seconds": …, '
        '"target_seconds": …, "patience": …} of which all but the workload may be left out.',
        show_default=False,
    ),
]

_NUMBERS = ("weight", "seconds", "target_seconds")
_COUNTS = ("trials", "patience")
_KEYS = ("workload", "name", "target", *_NUMBERS, *_COUNTS)


def tune_tasks(
    tasks: Tasks,
    target: Target = "llvm",
    trials: Annotated[
        int | None, typer.Option(min=1, help="Candidates to measure in all; 64 for each task.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, max=FINITE, help="Time limit of the search.")
    ] = None,
    target_seconds: Annotated[
        float | None, typer.Option(min=1e-12, max=FINITE, help="A weighted sum of times that is good enough.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="So many trials in a row without a new best end the search.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same search.")] = 0,
    strategy: Annotated[str, typer.Option(help="As for `tune`.")] = "guided",
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Search for the fastest schedules of TASKS with one budget, on this machine.

    Each next batch of trials goes to the task that promises to save the most time, times its weight. A task
    that fails stops no other. Ends with 1 when there is a task without a schedule.
    """
    with tuning_here(database_url(db)) as store:
        from ...tuner.tasks import tune_tasks as search

        record = search(
            [task for text in tasks for task in _tasks_of(text)],
            target,
            trials,
            seconds=seconds,
            target_seconds=target_seconds,
            patience=patience,
            store=store,
            seed=seed,
            strategy=strategy,
        )
    show(_json(record), as_json, lambda: _text(record))
    for result in record.results:
        for message in result.space_errors.values():
            say(f"tilewright: {message}")
    if record.failed:
        names = ", ".join(result.name for result in record.failed)
        raise CommandError(f"no schedule was found for {names}")


def _tasks_of(text: str) -> list[WeightedTask]:
    """The tasks that an argument names. Raises CommandError."""
    from ...tuner.weighted_task import WeightedTask

    entries = _list_in(text)
    if entries is None:
        return [WeightedTask(func=func_of(text))]
    return [_task(entry, f"{text}: task {number}") for number, entry in enumerate(entries)]


def _list_in(text: str) -> list[Any] | None:
    """The list in a JSON file; None where the argument is something else."""
    path = Path(text)
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{text}: not JSON: {error}", Exit.USAGE) from error
    return read if isinstance(read, list) else None


def _task(entry: Any, where: str) -> WeightedTask:
    from ...tuner.weighted_task import WeightedTask

    if not isinstance(entry, dict) or not isinstance(entry.get("workload"), str | dict):
        raise CommandError(
            f"{where}: expected an object with a 'workload' that is an operator or file.py:function",
            Exit.USAGE,
        )
    for key, value in entry.items():
        if key not in _KEYS:
            raise CommandError(f"{where}: unknown key {key!r}; known: {', '.join(_KEYS)}", Exit.USAGE)
        if (key in _NUMBERS and not _is_number(value)) or (key in _COUNTS and type(value) is not int):
            wanted = "a number" if key in _NUMBERS else "an integer"
            raise CommandError(f"{where}: {key} is {wanted}, not {json.dumps(value)}", Exit.USAGE)
    workload = entry["workload"]
    func = func_of(workload if isinstance(workload, str) else json.dumps(workload))
    return WeightedTask(func=func, **{key: value for key, value in entry.items() if key != "workload"})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FINITE


def _json(record: TasksRecord) -> dict[str, Any]:
    return {
        "reason": record.reason,
        "trial_count": record.trial_count,
        "wall_seconds": record.wall_seconds,
        "weighted_seconds": record.weighted_seconds,
        "tasks": [_task_json(result) for result in record.results],
        "turns": [asdict(turn) for turn in record.turns],
    }


def _task_json(result: TaskResult) -> dict[str, Any]:
    found = result.record
    return {
        "name": result.name,
        "weight": result.weight,
        "state": result.state,
        "reason": result.reason,
        "seconds": result.seconds,
        "gflops": None if found is None else found.gflops,
        "trial_count": result.trial_count,
        "turns": result.turns,
        "space_errors": dict(result.space_errors),
        "trace": None if found is None or found.trace is None else found.trace.to_json(),
        "job": None if found is None else found.job,
    }


def _text(record: TasksRecord) -> list[str]:
    rows = [
        [
            result.name,
            f"{result.weight:g}",
            "none"
            if result.record is None or result.seconds is None
            else speed(result.seconds, result.record.gflops),
            str(result.trial_count),
            f"{result.state} ({result.reason})",
        ]
        for result in record.results
    ]
    total = record.weighted_seconds
    summed = "" if total is None else f", {total * 1e6:.1f} µs by weight"
    names = ["task", "weight", "best", "trials", "state"]
    return [*table(names, rows), f"{record.trial_count} trials{summed}: {record.reason}"]
