"""The same client for programs that await."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Self

import anyio
import httpx

from ..measure.messages import SourceUnreachable
from . import schedule_verbs, verbs, worker_verbs
from .async_transport import AsyncTransport
from .best_lookup import BestLookup, RemoteSchedule
from .calls import AsyncListing, AsyncVerb, Call
from .event_stream import EventReader
from .following import STREAM_SILENCE, Following
from .views import EventView

__all__ = ["AsyncClient"]


class AsyncClient:
    """Client, method for method, of which each is awaited and each list and stream is read with `async for`.

    For one event loop, of asyncio or another that anyio knows. A call may be cancelled: whether it then has
    its effect is open.
    """

    version = AsyncVerb(verbs.version)
    submit = AsyncVerb(verbs.submit)
    submit_all = AsyncVerb(verbs.submit_all)
    validate = AsyncVerb(verbs.validate)
    job = AsyncVerb(verbs.job)
    jobs = AsyncListing(verbs.jobs)
    trials = AsyncListing(verbs.trials)
    cancel = AsyncVerb(verbs.cancel)
    pause = AsyncVerb(verbs.pause)
    resume = AsyncVerb(verbs.resume)
    extend = AsyncVerb(verbs.extend)
    ask = AsyncVerb(verbs.ask)
    tell = AsyncVerb(verbs.tell)
    operators = AsyncVerb(verbs.operators)
    workers = AsyncVerb(verbs.workers)
    worker = AsyncVerb(worker_verbs.worker)
    pause_worker = AsyncVerb(worker_verbs.pause_worker)
    resume_worker = AsyncVerb(worker_verbs.resume_worker)
    drain_worker = AsyncVerb(worker_verbs.drain_worker)
    quarantine_worker = AsyncVerb(worker_verbs.quarantine_worker)
    release_worker = AsyncVerb(worker_verbs.release_worker)
    remove_worker = AsyncVerb(worker_verbs.remove_worker)
    crashes = AsyncVerb(worker_verbs.crashes)
    clear_crash = AsyncVerb(worker_verbs.clear_crash)
    create_token = AsyncVerb(verbs.create_token)
    tokens = AsyncListing(verbs.tokens)
    revoke_token = AsyncVerb(verbs.revoke_token)
    audit = AsyncListing(verbs.audit)
    nearby = AsyncVerb(schedule_verbs.nearby)
    report = AsyncVerb(schedule_verbs.report)
    schedules = AsyncListing(schedule_verbs.schedules)
    explain = AsyncVerb(schedule_verbs.explain)
    pin = AsyncVerb(schedule_verbs.pin)
    unpin = AsyncVerb(schedule_verbs.unpin)
    pins = AsyncVerb(schedule_verbs.pins)
    freeze = AsyncVerb(schedule_verbs.freeze)
    unfreeze = AsyncVerb(schedule_verbs.unfreeze)
    freezes = AsyncVerb(schedule_verbs.freezes)
    changed_since = AsyncVerb(schedule_verbs.changed_since)
    retire = AsyncVerb(schedule_verbs.retire)
    export_lines = AsyncListing(schedule_verbs.export_lines)
    import_lines = AsyncVerb(schedule_verbs.import_lines)

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        insecure_http: bool = False,
        timeout: float = 10.0,
        handler: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = AsyncTransport(
            url, token, insecure_http=insecure_http, timeout=timeout, handler=handler
        )
        self._lookup = BestLookup(self._transport.url)

    @property
    def url(self) -> str:
        return self._transport.url

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def do(self, call: Call) -> httpx.Response:
        """Send one of the calls that methods are made of."""
        if call.within is None:
            return await self._transport.run(call.on(self._transport))
        with anyio.fail_after(call.within):
            return await self._transport.run(call.on(self._transport))

    async def best(
        self,
        workload: str,
        target: str,
        hardware: str,
        freeze: str | None = None,
        *,
        allow: Sequence[str] = (),
    ) -> RemoteSchedule | None:
        """The schedule by keys, or None; with `freeze`, the one that was best-known when that was made.
        `allow`: what the server may answer beside it, `same_family`, `transferred`, `default`. Answers within
        a second or raises ConnectionError."""
        key = (workload, target, hardware)
        return await AsyncVerb(self._lookup.flow).__get__(self, AsyncClient)(key, freeze, allow)

    async def events(self, job: str, *, after: int = 0) -> AsyncIterator[EventView]:
        """The events of a job after number `after`, as they happen, until the job's last one.

        A connection that breaks is made again from the last event seen. Raises SourceUnreachable when the
        server stays away.
        """
        following = Following(job, self.url, after)
        while True:
            # Asked before the stream: what a finished job's stream gives is all there is.
            finished = (await self.job(job)).finished
            try:
                async for event in self._stream(job, following):
                    following.saw(event)
                    yield event
            except (httpx.HTTPError, SourceUnreachable) as error:
                await anyio.sleep(following.broke(error))
                continue
            if finished:
                return

    async def _stream(self, job: str, following: Following) -> AsyncIterator[EventView]:
        opened = self._transport.stream(
            f"/v1/jobs/{verbs.segment(job)}/events",
            params={},
            headers=following.headers,
            read_timeout=STREAM_SILENCE,
        )
        async with opened as response:
            if not response.is_success:
                await response.aread()
                self._transport.checked(response)
            reader = EventReader()
            async for line in response.aiter_lines():
                if (event := reader.line(line)) is not None:
                    yield event
