"""Where a builder's work comes from over HTTP."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from ..measure.messages import PROTOCOL, MessageError, NotATilewright
from ..measure.run_only.messages import BuildAnswer, BuildLease
from .transport import ApiError, Transport
from .worker_client import as_source_error

# An artifact of many MiB on a slow line.
_PUT_SECONDS = 120.0


class BuilderClient:
    """A BuildSource. `codegen` is the version of this installation's code generator; the name is made unique,
    so that a builder that comes back does not take itself for the one before."""

    def __init__(self, transport: Transport, name: str, codegen: str) -> None:
        self._transport = transport
        self._identity = {"protocol": PROTOCOL, "builder": f"{name[:100]}-{secrets.token_hex(8)}"}
        self._codegen = codegen

    def claim(self, max_items: int, wait_seconds: float) -> BuildLease | None:
        said = {"codegen": self._codegen, "max_items": max_items, "wait_seconds": wait_seconds}
        answer = self._post("/v1/builds", said, timeout=self._transport.timeout + wait_seconds)
        if answer is None:
            return None
        try:
            return BuildLease.from_json(answer)
        except MessageError as error:
            raise NotATilewright(f"an answer that is no BuildLease ({error})", self._transport.url) from error

    def renew(self, builds: list[tuple[str, int]]) -> None:
        held = [{"build": build, "attempt": attempt} for build, attempt in builds]
        self._post("/v1/builds:renew", {"builds": held})

    def put(self, sha256: str, path: Path) -> None:
        try:
            self._transport.request(
                "PUT",
                f"/v1/artifacts/{sha256}",
                content=path.read_bytes(),
                headers={"Content-Type": "application/octet-stream"},
                timeout=max(_PUT_SECONDS, self._transport.timeout),
                retry=False,
            )
        except ApiError as error:
            raise as_source_error(error) from error

    def settle(self, answer: BuildAnswer) -> None:
        self._post(f"/v1/builds/{answer.build}:settle", {"answer": answer.to_json()})

    def release(self) -> None:
        self._post("/v1/builds:release", {})

    def _post(self, path: str, said: dict[str, Any], *, timeout: float | None = None) -> Any:
        body = {**self._identity, **said}
        try:
            answer = self._transport.request("POST", path, json=body, timeout=timeout, retry=False)
        except ApiError as error:
            raise as_source_error(error) from error
        return None if answer.status_code == 204 else answer.json()
