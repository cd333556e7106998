"""The client's verbs for workers, and for the candidates that took some with them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .transport import Transport
from .views import CrashesView, CrashView, WorkerChangeView, WorkersView, WorkerView


class WorkerVerbs:
    """A worker is named by its name or id; ApiError (404) lists the known ones.

    The verbs need a token of scope `admin`, and may be sent again: a call whose answer was lost has no second
    effect. Where one does not fit the worker's state, ApiError (409) says which does.
    """

    _transport: Transport

    def workers(self) -> list[WorkerView]:
        """All workers but removed ones, by name."""
        return WorkersView.model_validate(self._transport.request("GET", "/v1/workers").json()).workers

    def worker(self, worker: str) -> WorkerView:
        answer = self._transport.request("GET", f"/v1/workers/{_part(worker)}")
        return WorkerView.model_validate(answer.json())

    def pause_worker(self, worker: str, *, seconds: float | None = None, note: str = "") -> WorkerChangeView:
        """No more candidates for it: for so many seconds by the server's clock, or until it is resumed."""
        return self._do(worker, "pause", {"seconds": seconds, "note": note})

    def resume_worker(self, worker: str) -> WorkerChangeView:
        """Let a paused or draining worker measure again."""
        return self._do(worker, "resume")

    def drain_worker(self, worker: str, *, note: str = "") -> WorkerChangeView:
        """Have it finish the candidate that runs and end."""
        return self._do(worker, "drain", {"note": note})

    def quarantine_worker(
        self, worker: str, note: str, *, since_seconds: float | None = None
    ) -> WorkerChangeView:
        """No more candidates for it, and nothing counts that it measured since it attached, or in the last so
        many seconds."""
        return self._do(worker, "quarantine", {"note": note, "since_seconds": since_seconds})

    def release_worker(self, worker: str, *, restore_results: bool = False) -> WorkerChangeView:
        """Let a quarantined worker measure again; `restore_results`: what it measured before counts again."""
        return self._do(worker, "release", {"restore_results": restore_results})

    def remove_worker(
        self, worker: str, *, note: str = "", discard_results: bool = False
    ) -> WorkerChangeView:
        """Its name attaches no more; `discard_results`: nothing that it ever measured counts."""
        return self._do(worker, "remove", {"note": note, "discard_results": discard_results})

    def crashes(self, hardware: str | None = None) -> list[CrashView]:
        """The newest 500 candidates with which workers were lost."""
        answer = self._transport.request("GET", "/v1/crashes", params={"hardware": hardware})
        return CrashesView.model_validate(answer.json()).crashes

    def clear_crash(self, candidate: str, hardware: str) -> None:
        """Let a candidate run again on a kind of hardware."""
        body = {"candidate": candidate, "hardware": hardware}
        self._transport.request("POST", "/v1/crashes:clear", json=body, idempotent=True)

    def _do(self, worker: str, verb: str, body: dict[str, Any] | None = None) -> WorkerChangeView:
        path = f"/v1/workers/{_part(worker)}:{verb}"
        answer = self._transport.request("POST", path, json=body, idempotent=True)
        return WorkerChangeView.model_validate(answer.json())


def _part(worker: str) -> str:
    """A name as one part of a path, whatever it holds."""
    return quote(worker, safe="") or "-"
