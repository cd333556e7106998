"""A job's progress in words, and as a display that follows it."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ..client import Client
from ..views import JobView, ProgressView
from .output import messages, say, visible

_LOOK_EVERY = 0.5


def follow(client: Client, job_id: str) -> JobView:
    """Show the job's progress on stderr until it has ended; the job as it is then.

    On a terminal one line is redrawn; elsewhere a line is written when something changed.
    """
    console = messages()
    return _redraw(client, job_id, console) if console.is_terminal else _write_lines(client, job_id)


def describe(progress: ProgressView) -> str:
    """`24/64 trials · best 412.3 µs, 112.1 GFLOP/s · failed: build_error 2 · 7 s left`"""
    known = f" ({progress.known} known before)" if progress.known else ""
    parts = [f"{progress.done}/{progress.asked} trials{known}"]
    if progress.best_seconds is not None:
        parts.append(f"best {speed(progress.best_seconds, progress.best_gflops)}")
    if progress.failures:
        parts.append("failed: " + ", ".join(f"{kind} {n}" for kind, n in progress.failures.items()))
    if progress.eta_seconds is not None:
        parts.append(f"{progress.eta_seconds:.0f} s left")
    return " · ".join(parts)


def speed(seconds: float, gflops: float | None) -> str:
    """`412.3 µs, 112.1 GFLOP/s`"""
    rate = "" if gflops is None else f", {gflops:.1f} GFLOP/s"
    return f"{seconds * 1e6:.1f} µs{rate}"


def state_line(job: JobView) -> str:
    """`job_… matmul: running` with the reason where there is one."""
    reason = f" ({job.reason})" if job.reason else ""
    return f"{job.id} {job.workload.name}: {job.state}{reason}"


def _redraw(client: Client, job_id: str, console: Console) -> JobView:
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[words]}", markup=False),
        console=console,
    )
    with bar:
        task = bar.add_task(job_id, total=None, words="")
        while True:
            job = client.job(job_id, wait=_LOOK_EVERY)
            bar.update(
                task,
                description=visible(state_line(job)),
                total=job.progress.asked,
                completed=job.progress.done,
                words=describe(job.progress),
            )
            if job.finished:
                return job


def _write_lines(client: Client, job_id: str) -> JobView:
    said = ""
    while True:
        job = client.job(job_id, wait=_LOOK_EVERY)
        # The time left changes with every look; it is no news by itself.
        news = f"{state_line(job)} · {describe(job.progress.model_copy(update={'eta_seconds': None}))}"
        if news != said:
            said = news
            say(f"{state_line(job)} · {describe(job.progress)}")
        if job.finished:
            return job
