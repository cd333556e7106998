"""The client of a tilewright server: typed, synchronous, usable under a running event loop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

import httpx

from ..measure.messages import NotATilewright, SourceUnreachable
from . import schedule_verbs, verbs, worker_verbs
from .best_lookup import BestLookup, RemoteSchedule
from .calls import Call, Listing, Verb
from .deadline import within
from .event_stream import read_events
from .following import STREAM_SILENCE, Following
from .transport import ApiError, InsecureToken, Transport
from .views import EventView

__all__ = ["ApiError", "Client", "InsecureToken", "NotATilewright", "RemoteSchedule", "SourceUnreachable"]


class Client:
    """Submits, follows and steers jobs, and looks best-known schedules up.

    Raises SourceUnreachable (a ConnectionError) when nothing answers, NotATilewright when something else
    does, ApiError when the server refuses, InsecureToken at once for a token that would travel in the clear.
    A call whose answer was lost is sent again with the same Idempotency-Key, so that it has one effect.
    """

    version = Verb(verbs.version)
    submit = Verb(verbs.submit)
    submit_all = Verb(verbs.submit_all)
    validate = Verb(verbs.validate)
    job = Verb(verbs.job)
    jobs = Listing(verbs.jobs)
    trials = Listing(verbs.trials)
    cancel = Verb(verbs.cancel)
    pause = Verb(verbs.pause)
    resume = Verb(verbs.resume)
    extend = Verb(verbs.extend)
    ask = Verb(verbs.ask)
    tell = Verb(verbs.tell)
    operators = Verb(verbs.operators)
    workers = Verb(verbs.workers)
    worker = Verb(worker_verbs.worker)
    pause_worker = Verb(worker_verbs.pause_worker)
    resume_worker = Verb(worker_verbs.resume_worker)
    drain_worker = Verb(worker_verbs.drain_worker)
    quarantine_worker = Verb(worker_verbs.quarantine_worker)
    release_worker = Verb(worker_verbs.release_worker)
    remove_worker = Verb(worker_verbs.remove_worker)
    crashes = Verb(worker_verbs.crashes)
    clear_crash = Verb(worker_verbs.clear_crash)
    create_token = Verb(verbs.create_token)
    tokens = Listing(verbs.tokens)
    revoke_token = Verb(verbs.revoke_token)
    audit = Listing(verbs.audit)
    nearby = Verb(schedule_verbs.nearby)
    report = Verb(schedule_verbs.report)
    schedules = Listing(schedule_verbs.schedules)
    explain = Verb(schedule_verbs.explain)
    pin = Verb(schedule_verbs.pin)
    unpin = Verb(schedule_verbs.unpin)
    pins = Verb(schedule_verbs.pins)
    freeze = Verb(schedule_verbs.freeze)
    unfreeze = Verb(schedule_verbs.unfreeze)
    freezes = Verb(schedule_verbs.freezes)
    changed_since = Verb(schedule_verbs.changed_since)
    retire = Verb(schedule_verbs.retire)
    export_lines = Listing(schedule_verbs.export_lines)
    import_lines = Verb(schedule_verbs.import_lines)

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        insecure_http: bool = False,
        timeout: float = 10.0,
        handler: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(url, token, insecure_http=insecure_http, timeout=timeout, handler=handler)
        self._lookup = BestLookup(self._transport.url)

    @property
    def url(self) -> str:
        return self._transport.url

    @property
    def transport(self) -> Transport:
        return self._transport

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def do(self, call: Call) -> httpx.Response:
        """Send one of the calls that methods are made of."""
        timeout = self._transport.timeout + call.extra if call.within is None else call.within

        def request() -> httpx.Response:
            return self._transport.request(
                call.method,
                call.path,
                json=call.json,
                params=call.params,
                headers=call.headers,
                idempotent=call.idempotent,
                timeout=timeout,
                retry=call.retry,
            )

        return request() if call.within is None else within(call.within, request)

    def best(
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
        return Verb(self._lookup.flow).__get__(self, Client)(key, freeze, allow)

    def events(self, job: str, *, after: int = 0) -> Iterator[EventView]:
        """The events of a job after number `after`, as they happen, until the job's last one.

        A connection that breaks is made again from the last event seen. Raises SourceUnreachable when the
        server stays away.
        """
        following = Following(job, self.url, after)
        while True:
            # Asked before the stream: what a finished job's stream gives is all there is.
            finished = self.job(job).finished
            try:
                for event in self._stream(job, following):
                    following.saw(event)
                    yield event
            except (httpx.HTTPError, SourceUnreachable) as error:
                time.sleep(following.broke(error))
                continue
            if finished:
                return

    def _stream(self, job: str, following: Following) -> Iterator[EventView]:
        opened: Any = self._transport.stream(
            f"/v1/jobs/{verbs.segment(job)}/events",
            params={},
            headers=following.headers,
            read_timeout=STREAM_SILENCE,
        )
        with opened as response:
            if not response.is_success:
                response.read()
                self._transport.checked(response)
            yield from read_events(response.iter_lines())
