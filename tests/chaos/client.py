"""Somebody who submits jobs all the time, and does not rest before each call is answered."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx

_MOST_UNFINISHED = 4
_FINAL = ("completed", "exhausted", "cancelled", "failed")
_STRATEGIES = ("random", "guided", "evolutionary", "local")


def _workload(draw: random.Random) -> dict[str, Any]:
    """One of few, so that some jobs are of a workload that has a best-known schedule already."""
    if draw.random() < 0.3:
        return {"op": "elementwise", "shape": [draw.choice((64, 96)), 64], "activation": "relu"}
    return {"op": "matmul", "m": draw.choice((16, 24, 32)), "n": 32, "k": 32, "dtype": "float32"}


class Submitter:
    """A thread. Each change carries a key and is sent until it is answered. A job that it pauses it resumes.

    `jobs` maps a job to its state, as far as it is known; `seeds` are those of all submissions.
    """

    def __init__(self, url: str, token: str, seed: int, say: Callable[[str], None]) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._draw = random.Random(seed)
        self._say = say
        self._submitting = threading.Event()
        self._stopping = threading.Event()
        self._paused: dict[str, float] = {}
        self.jobs: dict[str, str] = {}
        self.seeds: set[int] = set()
        self.trouble: list[str] = []
        self._thread = threading.Thread(target=self._run, name="submitter", daemon=True)

    def __enter__(self) -> Submitter:
        self._submitting.set()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def submit_no_more(self) -> None:
        self._submitting.clear()

    @property
    def unfinished(self) -> list[str]:
        return [job for job, state in self.jobs.items() if state not in _FINAL]

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=10.0, trust_env=False) as http:
            while not self._stopping.is_set():
                if self._submitting.is_set() and len(self.unfinished) < _MOST_UNFINISHED:
                    self._submit(http)
                elif self._submitting.is_set() and self._draw.random() < 0.1 and self.unfinished:
                    self._steer(http, self._draw.choice(self.unfinished))
                self._resume(http)
                for job in self.unfinished:
                    self._look(http, job)
                self._stopping.wait(0.3)

    def _submit(self, http: httpx.Client) -> None:
        seed = len(self.seeds)
        self.seeds.add(seed)
        body = {
            "workload": _workload(self._draw),
            "target": "llvm",
            "budget": {"trials": self._draw.choice((4, 8, 12))},
            "seed": seed,
            "strategy": self._draw.choice(_STRATEGIES),
            "history": "ignore",
        }
        if (answer := self._until_answered(http, "/v1/jobs", body)) is not None:
            self.jobs[answer["id"]] = answer["state"]

    def _steer(self, http: httpx.Client, job: str) -> None:
        verb = self._draw.choice(("cancel", "pause", "pause"))
        if self._until_answered(http, f"/v1/jobs/{job}:{verb}", None) is None:
            return
        if verb == "pause":
            self._paused[job] = time.monotonic() + self._draw.uniform(0.5, 5.0)
        else:
            self._paused.pop(job, None)

    def _resume(self, http: httpx.Client) -> None:
        for job, at in list(self._paused.items()):
            if time.monotonic() >= at or not self._submitting.is_set():
                del self._paused[job]
                if self.jobs[job] != "cancelled":
                    self._until_answered(http, f"/v1/jobs/{job}:resume", None)

    def _look(self, http: httpx.Client, job: str) -> None:
        try:
            answer = http.get(f"/v1/jobs/{job}")
        except httpx.HTTPError:
            return
        if answer.status_code == 200:
            self.jobs[job] = answer.json()["state"]
        elif answer.status_code == 404:
            self.trouble.append(f"job {job} was acknowledged and is not there: {answer.text}")
            self.jobs[job] = "failed"

    def _until_answered(self, http: httpx.Client, path: str, body: Any) -> dict[str, Any] | None:
        """What a call came to that may be sent again and again; None for one that no longer fits."""
        headers = {"Idempotency-Key": str(uuid.UUID(int=self._draw.getrandbits(128)))}
        while not self._stopping.is_set():
            try:
                answer = http.post(path, json=body, headers=headers)
            except httpx.HTTPError:
                self._stopping.wait(0.2)
                continue
            code = answer.json().get("code", "") if answer.status_code >= 400 else ""
            if answer.status_code < 400:
                said: dict[str, Any] = answer.json()
                return said
            if answer.status_code == 409 and code != "in-flight":
                return None
            if answer.status_code not in (409, 429, 502, 503, 504, 507):
                self.trouble.append(f"POST {path} was answered {answer.status_code}: {answer.text[:300]}")
                return None
            self._stopping.wait(0.2)
        return None
