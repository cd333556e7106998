"""Simulated workers: real calls over HTTP, simulated measurements.

`python -m simulated.workers` reads one JSON object from stdin (a Fleet), runs its workers until the time is
over, and writes one JSON object on stdout: what they saw.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from .wire import Connection

_RETRY = 0.2


@dataclass(frozen=True)
class Fleet:
    """`hello` is the WorkerHello that all of them send, but for name and session. A trial takes
    `trial_seconds`, and results are handed in `together` at a time. They attach within `spread` seconds."""

    url: str
    token: str
    hello: dict[str, Any]
    first: int
    count: int
    seconds: float
    trial_seconds: float
    max_items: int
    together: int
    wait_seconds: float
    spread: float


@dataclass
class Seen:
    """What workers saw: the seconds that each call took by kind, which attempts were acknowledged as settled
    (`trial attempt`), how many of these in the second half of the time, and answers that should not have
    come."""

    took: dict[str, list[float]] = field(default_factory=dict)
    settled: list[str] = field(default_factory=list)
    late: int = 0
    leases: int = 0
    items: int = 0
    lost: list[str] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)


class SimulatedWorker:
    def __init__(self, fleet: Fleet, number: int, seen: Seen, ends: float) -> None:
        self._fleet = fleet
        self._number = number
        self._seen = seen
        self._ends = ends
        self._http = Connection(fleet.url, fleet.token)
        self._who: dict[str, Any] = {}
        self._renewed = 0.0
        self._renew_seconds = 10.0

    async def run(self) -> None:
        fleet = self._fleet
        await asyncio.sleep(fleet.spread * (self._number % fleet.count) / fleet.count)
        session = secrets.token_hex(16)
        hello = {**fleet.hello, "name": f"simulated-{self._number}", "session": session}
        status, answer = await self._call("attach", "/v1/workers", hello)
        if status != 201:
            self._seen.lost.append(f"attach: {status} {answer}")
            return
        self._renew_seconds = answer["renew_seconds"]
        self._who = {"protocol": hello["protocol"], "worker": answer["worker"], "session": session}
        while (left := self._ends - time.monotonic()) > 0:
            asked = {"max_items": fleet.max_items, "wait_seconds": min(fleet.wait_seconds, left)}
            status, lease = await self._call("lease", "/v1/leases", {**self._who, **asked})
            if status == 200:
                await self._measure(lease)
        self._http.close()

    async def _measure(self, lease: dict[str, Any]) -> None:
        self._seen.leases += 1
        self._seen.items += len(lease["items"])
        self._renewed = time.monotonic()
        path = f"/v1/leases/{lease['lease']}"
        results: list[dict[str, Any]] = []
        for item in lease["items"]:
            if time.monotonic() >= self._ends:
                break
            which = {"item": item["item"], "attempt": item["attempt"]}
            status, said = await self._call("start", f"{path}:start", {**self._who, **which})
            if status != 200:
                self._seen.lost.append(f"start: {status} {said}")
                return
            await self._sleep(path)
            results.append(_result(item))
            if len(results) == self._fleet.together:
                await self._settle(path, results)
                results = []
        if results:
            await self._settle(path, results)
        if time.monotonic() >= self._ends:
            await self._call("release", f"{path}:release", self._who)

    async def _sleep(self, path: str) -> None:
        wakes = time.monotonic() + self._fleet.trial_seconds
        while (left := wakes - time.monotonic()) > 0:
            due = self._renewed + self._renew_seconds - time.monotonic()
            await asyncio.sleep(max(0.0, min(left, due)))
            if time.monotonic() - self._renewed >= self._renew_seconds:
                self._renewed = time.monotonic()
                status, said = await self._call("renew", f"{path}:renew", self._who)
                if status != 200:
                    self._seen.lost.append(f"renew: {status} {said}")

    async def _settle(self, path: str, results: list[dict[str, Any]]) -> None:
        status, said = await self._call("settle", f"{path}:settle", {**self._who, "results": results})
        if status == 200:
            self._renewed = time.monotonic()
            self._seen.settled += [f"{r['item']} {r['attempt']}" for r in results]
            if 0 <= self._ends - time.monotonic() <= self._fleet.seconds / 2:
                self._seen.late += len(results)
        else:
            self._seen.lost.append(f"settle: {status} {said}")

    async def _call(self, kind: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Again until there is an answer that is one: a worker does not give up on a server in trouble."""
        while True:
            begun = time.monotonic()
            try:
                status, headers, data = await self._http.call("POST", path, body)
            except (OSError, EOFError) as error:
                self._count(type(error).__name__)
                await asyncio.sleep(_RETRY)
                continue
            if status == 429 or status >= 500:
                self._count(f"{kind} {status}")
                await asyncio.sleep(float(headers.get("retry-after", _RETRY)))
                continue
            if status != 204:  # it waited for work, as it asked
                self._seen.took.setdefault(kind, []).append(time.monotonic() - begun)
            return status, json.loads(data) if data else None

    def _count(self, what: str) -> None:
        self._seen.errors[what] = self._seen.errors.get(what, 0) + 1


def _result(item: dict[str, Any]) -> dict[str, Any]:
    """A time that the schedule alone decides: of 1 to 4 ms, by the hash of its trace."""
    trace = json.dumps(item["trace"], sort_keys=True).encode()
    seconds = 1e-3 + 3e-3 * int.from_bytes(hashlib.sha256(trace).digest()[:4], "big") / 2**32
    return {
        "item": item["item"],
        "attempt": item["attempt"],
        "seconds": seconds,
        "samples": [seconds, seconds * 1.01, seconds * 1.02],
        "error": 0.1,
        "build_seconds": 0.05,
        "wall_seconds": 0.1,
    }


async def run_fleet(fleet: Fleet) -> Seen:
    seen = Seen()
    ends = time.monotonic() + fleet.seconds
    workers = [SimulatedWorker(fleet, n, seen, ends) for n in range(fleet.first, fleet.first + fleet.count)]
    await asyncio.gather(*(worker.run() for worker in workers))
    return seen


def _runner() -> Callable[[Awaitable[Seen]], Seen]:
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run  # type: ignore[return-value]
    return uvloop.run  # type: ignore[no-any-return]


def main() -> None:
    seen = _runner()(run_fleet(Fleet(**json.load(sys.stdin))))
    json.dump(asdict(seen), sys.stdout)


if __name__ == "__main__":
    main()
