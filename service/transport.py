"""An Exchange with a server, by a client that waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Self, TypeVar

import httpx

from .answering import answered
from .bounded_http import BoundedHttp
from .exchange import HANDSHAKE_SECONDS, ApiError, Exchange, InsecureToken, Pause, Send, Steps, given

__all__ = ["ApiError", "InsecureToken", "Transport"]

T = TypeVar("T")


class Transport(Exchange):
    """Safe to use from several threads, and under a running event loop."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        insecure_http: bool,
        timeout: float,
        handler: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, insecure_http=insecure_http, timeout=timeout)
        # A proxy of the environment is for other machines: this one is reached directly.
        self._http = BoundedHttp(handler, trust_env=not self.loopback)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotent: bool | None = None,
        timeout: float | None = None,
        retry: bool = True,
    ) -> httpx.Response:
        """See Exchange.requesting."""
        limit = self.timeout if timeout is None else timeout
        self.handshake(min(limit, HANDSHAKE_SECONDS))
        return self._run(
            self.requesting(
                method,
                path,
                json=json,
                content=content,
                params=params,
                headers=headers,
                idempotent=idempotent,
                timeout=timeout,
                retry=retry,
            )
        )

    def stream(
        self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str], read_timeout: float
    ) -> Any:
        """A context manager of the streamed answer of a GET."""
        self.handshake(min(self.timeout, HANDSHAKE_SECONDS))
        return self._http.stream(
            self.url + path,
            params=given(params),
            headers={**self.headers, **headers},
            timeout=httpx.Timeout(self.timeout, read=read_timeout),
        )

    def handshake(self, timeout: float = HANDSHAKE_SECONDS) -> None:
        """Make sure, once, that a tilewright server answers, before the token is sent to it."""
        with self._lock:
            self._run(self.shaking_hands(timeout))

    def _run(self, steps: Steps[T]) -> T:
        return answered(steps, self._take)

    def _take(self, step: Send | Pause) -> httpx.Response | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        return self._http.request(
            step.method,
            step.url,
            seconds=step.seconds,
            most_bytes=step.most_bytes,
            json=step.json,
            content=step.content,
            params=step.params,
            headers=step.headers,
        )
