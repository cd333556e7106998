"""An Exchange with a server, by a client that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import httpx

from .answering import answered_async
from .bounded_http import TimeUp, TooLong, whole
from .exchange import HANDSHAKE_SECONDS, Exchange, Pause, Send, Steps, given

T = TypeVar("T")


class AsyncTransport(Exchange):
    """For one event loop. A call may be cancelled."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        insecure_http: bool,
        timeout: float,
        handler: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, insecure_http=insecure_http, timeout=timeout)
        self._http = httpx.AsyncClient(transport=handler, trust_env=not self.loopback)

    async def close(self) -> None:
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        return await answered_async(steps, self._take)

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str], read_timeout: float
    ) -> AsyncIterator[httpx.Response]:
        """The streamed answer of a GET."""
        await self.run(self.shaking_hands(min(self.timeout, HANDSHAKE_SECONDS)))
        opened = self._http.stream(
            "GET",
            self.url + path,
            params=given(params),
            headers={**self.headers, **headers},
            timeout=httpx.Timeout(self.timeout, read=read_timeout),
        )
        async with opened as response:
            yield response

    async def _take(self, step: Send | Pause) -> httpx.Response | None:
        if isinstance(step, Pause):
            await anyio.sleep(step.seconds)
            return None
        return await self._send(step)

    async def _send(self, step: Send) -> httpx.Response:
        request = self._http.build_request(
            step.method,
            step.url,
            json=step.json,
            content=step.content,
            params=step.params,
            headers=step.headers,
            timeout=step.seconds,
        )
        body = bytearray()
        try:
            with anyio.fail_after(step.seconds):
                answer = await self._http.send(request, stream=True)
                try:
                    async for chunk in answer.aiter_bytes():
                        body += chunk
                        if len(body) > step.most_bytes:
                            raise TooLong(f"an answer of more than {step.most_bytes} bytes")
                finally:
                    await answer.aclose()
        except (TimeoutError, httpx.TimeoutException):
            raise TimeUp(f"no whole answer within {step.seconds:g} s") from None
        return whole(answer, request, bytes(body))
