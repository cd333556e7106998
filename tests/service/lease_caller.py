"""A worker that calls the server by itself, as an attached worker would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service_harness import (
    FACTS,
    HARDWARE,
    Api,
)

from tilewright.measure.messages import MeasureResult, WorkerHello

SESSION = "5" * 32
HELLO = WorkerHello(1, "w1", SESSION, HARDWARE, FACTS, {"codegen": "7"}, {"rack": "3"}).to_json()


@dataclass(frozen=True)
class Caller:
    """A worker that attached, and speaks the protocol by hand."""

    api: Api
    headers: dict[str, str]
    worker: str

    def post(self, path: str, **said: Any) -> Any:
        body = {"protocol": 1, "worker": self.worker, "session": SESSION, **said}
        return self.api.http.post(path, json=body, headers=self.headers)

    def lease(self, max_items: int = 2, wait_seconds: float = 0.0) -> Any:
        return self.post("/v1/leases", max_items=max_items, wait_seconds=wait_seconds)


def result_of(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = MeasureResult(
        item["item"], item["attempt"], seconds=1e-5, samples=(1e-5, 2e-5), error=0.25, wall_seconds=0.5
    )
    return {**made.to_json(), **more}
