"""A search's progress as one line on a terminal.

What draws it takes 20 ms to load: a search that shows nothing does without it.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from .snapshot import Snapshot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

__all__ = [
    "NoProgress",
    "NoTasksProgress",
    "ProgressDisplay",
    "TasksDisplay",
    "TasksProgress",
    "TerminalProgress",
    "describe",
]


class ProgressDisplay(Protocol):
    """Shows snapshots while it is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...


class NoProgress:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, snapshot: Snapshot) -> None:
        return


class TerminalProgress:
    """A line that is redrawn in place: trials done of the budget, the best so far, failures, time left. On
    standard error unless told otherwise."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[words]}"),
            console=console or Console(stderr=True),
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID = self._bar.add_task(title, total=None, words="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(
        self,
        snapshot: Snapshot,
        *,
        title: str | None = None,
        done: int | None = None,
        trials: int | None = None,
    ) -> None:
        """The bar stands for `done` of `trials`, where that is more than the snapshot's search."""
        self._bar.update(
            self._task,
            description=title,
            total=snapshot.trials if trials is None else trials,
            completed=snapshot.done if done is None else done,
            words=describe(snapshot),
        )


class TasksDisplay(Protocol):
    """Shows snapshots of several searches, by name, while it is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, name: str, snapshot: Snapshot, done: int, trials: int) -> None:
        """The search of that name; `done` of `trials` are measured in all searches."""


class NoTasksProgress:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, name: str, snapshot: Snapshot, done: int, trials: int) -> None:
        return


class TasksProgress:
    """A line that is redrawn in place: trials of all tasks done, and the task whose turn it is."""

    def __init__(self, console: Console | None = None) -> None:
        self._line = TerminalProgress("tuning", console)

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__()

    def show(self, name: str, snapshot: Snapshot, done: int, trials: int) -> None:
        self._line.show(snapshot, title=f"tuning {name}", done=done, trials=trials)


def describe(snapshot: Snapshot) -> str:
    """`24/64 trials · best 412.3 µs, 112.1 GFLOP/s (trial 19) · failed: build_error 2 · 7 s left`"""
    parts = [f"{snapshot.done}/{snapshot.trials} trials"]
    if snapshot.best_seconds is not None:
        speed = "" if snapshot.best_gflops is None else f", {snapshot.best_gflops:.1f} GFLOP/s"
        parts.append(f"best {snapshot.best_seconds * 1e6:.1f} µs{speed} ({_which(snapshot)})")
    if snapshot.failures:
        kinds = ", ".join(f"{kind} {count}" for kind, count in snapshot.failures.items())
        parts.append(f"failed: {kinds}")
    if snapshot.remaining is not None and snapshot.done < snapshot.trials:
        parts.append(f"{snapshot.remaining:.0f} s left")
    return " · ".join(parts)


def _which(snapshot: Snapshot) -> str:
    return "known before" if snapshot.best_number is None else f"trial {snapshot.best_number}"
