"""What the service acknowledged, as a proxy between it and everyone else saw it answer."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

#: How a call is answered that was made while something was down, or that was made twice.
_NEEDS_NO_REMARK = frozenset({408, 409, 425, 429, 502, 503, 504, 507})


@dataclass
class Ledger:
    """An answer of the server counts as soon as it is whole, whether or not it reached who asked.

    `jobs`: the job of each idempotency key. `settled`: the result of each (trial, attempt). `cancelled`: jobs
    that were said to be. `odd`: what no fault explains.
    """

    jobs: dict[str, str] = field(default_factory=dict)
    settled: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(
        self, method: str, path: str, headers: dict[str, str], body: bytes, status: int, answer: bytes
    ) -> None:
        """A whole answer to a whole request."""
        path = path.partition("?")[0]
        verb = path.rpartition(":")[2] if ":" in path else path.rpartition("/")[2]
        with self._lock:
            if status >= 400:
                self._refused(method, path, status, answer)
            elif method == "POST":
                self._took(path, verb, headers, body, answer)

    def _refused(self, method: str, path: str, status: int, answer: bytes) -> None:
        if status not in _NEEDS_NO_REMARK:
            self.odd.append(
                f"{method} {path} was answered {status}: {answer[:300].decode('utf-8', 'replace')}"
            )

    def _took(self, path: str, verb: str, headers: dict[str, str], body: bytes, answer: bytes) -> None:
        if path == "/v1/jobs":
            key, job = headers.get("idempotency-key", ""), json.loads(answer)["id"]
            if self.jobs.setdefault(key, job) != job:
                self.odd.append(f"key {key} made job {self.jobs[key]} and job {job}")
        elif verb == "settle":
            for result in json.loads(body)["results"]:
                of = result["item"], result["attempt"]
                if self.settled.setdefault(of, result) != result:
                    self.odd.append(f"trial {of[0]} attempt {of[1]} was settled with two results, both taken")
        elif verb == "cancel":
            said = json.loads(answer)
            if said["state"] == "cancelled":
                self.cancelled.add(said["id"])
        elif verb == "resume":
            self.cancelled.discard(json.loads(answer)["id"])
