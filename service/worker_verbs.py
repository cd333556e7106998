"""What a client can do to the workers of a server, and to the candidates that took some with them.

A worker is named by its name or id; ApiError (404) lists the known ones. What changes one needs a token of
scope `admin`. Where a verb does not fit the worker's state, ApiError (409) says which does.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .calls import Flow, change, get
from .views import CrashesView, CrashView, WorkerChangeView, WorkersView, WorkerView


def worker(worker: str) -> Flow[WorkerView]:
    """One worker: its state and the reason, what it measures, what it is."""
    return WorkerView.model_validate((yield get(f"/v1/workers/{yield from _part(worker)}")).json())


def pause_worker(worker: str, *, seconds: float | None = None, note: str = "") -> Flow[WorkerChangeView]:
    """No more candidates for it: for so many seconds by the server's clock, or until it is resumed."""
    body = {"seconds": seconds, "note": note}
    return (yield from _act(worker, "pause", body))


def resume_worker(worker: str) -> Flow[WorkerChangeView]:
    """Let a paused or draining worker measure again."""
    return (yield from _act(worker, "resume"))


def drain_worker(worker: str, *, note: str = "") -> Flow[WorkerChangeView]:
    """Have it finish the candidate that runs and end."""
    return (yield from _act(worker, "drain", {"note": note}))


def quarantine_worker(
    worker: str, note: str, *, since_seconds: float | None = None
) -> Flow[WorkerChangeView]:
    """No more candidates for it, and nothing counts that it measured since it was last known to be sound, or
    in the last so many seconds."""
    body = {"note": note, "since_seconds": since_seconds}
    return (yield from _act(worker, "quarantine", body))


def release_worker(worker: str, *, restore_results: bool = False) -> Flow[WorkerChangeView]:
    """Let a quarantined worker measure again; `restore_results`: what it measured before counts again."""
    body = {"restore_results": restore_results}
    return (yield from _act(worker, "release", body))


def remove_worker(worker: str, *, note: str = "", discard_results: bool = False) -> Flow[WorkerChangeView]:
    """Its name attaches no more; `discard_results`: nothing that it ever measured counts."""
    body = {"note": note, "discard_results": discard_results}
    return (yield from _act(worker, "remove", body))


def crashes(hardware: str | None = None) -> Flow[list[CrashView]]:
    """The newest 500 candidates with which workers were lost."""
    return CrashesView.model_validate((yield get("/v1/crashes", {"hardware": hardware})).json()).crashes


def clear_crash(candidate: str, hardware: str) -> Flow[None]:
    """Let a candidate run again on a kind of hardware."""
    yield change("/v1/crashes:clear", {"candidate": candidate, "hardware": hardware})


def _act(worker: str, verb: str, body: dict[str, Any] | None = None) -> Flow[WorkerChangeView]:
    part = yield from _part(worker)
    return WorkerChangeView.model_validate((yield change(f"/v1/workers/{part}:{verb}", body)).json())


def _part(worker: str) -> Flow[str]:
    """A worker as one part of a path: by its id where its name holds a slash, which would end the part."""
    if "/" in worker:
        listed = WorkersView.model_validate((yield get("/v1/workers")).json()).workers
        worker = next((known.id for known in listed if known.name == worker), worker.replace("/", "%2F"))
    return quote(worker, safe="") or "-"
