"""Requests that change something: had once, however often they are repeated, and written down.

What a request changes, the answer that is kept under its Idempotency-Key and its entry in the audit log are
one transaction. So a process that is killed between the effect and the answer leaves either both or neither,
and whoever asks again with the same key is given the same answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from ..db.errors import Conflict, StoreError
from ..db.service_records import NewAudit, StoredAnswer
from ..db.store import Store
from .auth import Principal
from .dispatch import Searching
from .errors import InFlight, InvalidRequest, KeyReused, ShownOnce
from .single_header import single_header

log = logging.getLogger("tilewright.service")

KEY_HEADER = "Idempotency-Key"
KEPT_SECONDS = 24 * 3600.0
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_KEPT_HEADERS = ("content-type", "location", "etag")
_ANONYMOUS = "anonymous"
DONE = "done"

current: ContextVar[Change | None] = ContextVar("change", default=None)
"""The change that this request is; copied into the thread in which its handler runs."""


class InFlightKeys:
    """The keys whose requests this process works on now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[str] = set()

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Raises InFlight where another request has it."""
        with self._lock:
            if key in self._keys:
                raise InFlight(
                    f"a request with this {KEY_HEADER} is being worked on: ask again for its answer",
                    headers={"Retry-After": "1"},
                )
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(key)


@dataclass(slots=True)
class Change:
    """One request that changes something. `key` is the digest of who asked and the Idempotency-Key."""

    store: Store
    in_flight: InFlightKeys
    who: Principal
    verb: str
    subject: str
    trace_id: str
    audited: bool
    key: str | None
    asked: str
    status: int
    then: list[Callable[[], None]] = field(default_factory=list, init=False)
    idle: bool = field(default=False, init=False)
    secret_of: str | None = field(default=None, init=False)

    def run(self, effect: Callable[[], Response]) -> Response:
        """The answer of `effect`, or the one that is kept. Raises InFlight, KeyReused, ShownOnce, and what
        `effect` raises, of which nothing is kept then."""
        if self.key is None:
            return self._first(effect) if self.audited else self._alone(effect)
        with self.in_flight.hold(self.key):
            kept = self._kept(self.key)
            if kept is not None:
                return kept
            try:
                return self._first(effect)
            except Conflict:
                # Another process had the effect meanwhile, and ours was not stored.
                kept = self._kept(self.key)
                if kept is None:
                    raise
                return kept

    def refused(self, outcome: str) -> None:
        """Write down that nothing came of it. Nobody's attempts are left to the log of the server: they could
        fill the database."""
        if self.audited and self.who.id is not None:
            try:
                self.store.add_audit(self._entry(outcome))
            except StoreError as error:
                log.warning("the audit log cannot be written: %s", error)

    def _alone(self, effect: Callable[[], Response]) -> Response:
        answer = effect()
        for action in self.then:
            action()
        return answer

    def _first(self, effect: Callable[[], Response]) -> Response:
        with self.store.together():
            answer = effect()
            if not self.idle:
                if self.key is not None:
                    self.store.keep_answer(self.key, self._to_keep(answer), KEPT_SECONDS)
                if self.audited:
                    self.store.add_audit(self._entry(DONE))
        for action in self.then:
            action()
        return answer

    def _kept(self, key: str) -> Response | None:
        kept = self.store.answer(key)
        if kept is None:
            return None
        if kept.request != self.asked:
            raise KeyReused(f"this {KEY_HEADER} was used for another request; take a new one for each")
        headers = json.loads(kept.headers)
        if (shown := headers.pop("x-shown", None)) is not None:
            raise ShownOnce(
                f"{shown} was made by this request, and its value was in the first answer alone: "
                "where that is lost, revoke it and make another"
            )
        headers["Idempotency-Replayed"] = "true"
        return Response(kept.body.encode(), kept.status, headers)

    def _to_keep(self, answer: Response) -> StoredAnswer:
        if self.secret_of is not None:
            return StoredAnswer(self.asked, answer.status_code, json.dumps({"x-shown": self.secret_of}), "")
        headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
        body = bytes(answer.body).decode()
        return StoredAnswer(self.asked, answer.status_code, json.dumps(headers), body)

    def _entry(self, outcome: str) -> NewAudit:
        who = self.who
        actor = who.id if who.id is not None else _ANONYMOUS
        name = who.name if who.name is not None else ""
        return NewAudit(actor, name, who.address, self.verb, self.subject, outcome, self.trace_id)


class AfterChange:
    """A Searching that is woken once the change of this request is stored: nothing is to be seen before."""

    def __init__(self, inner: Searching) -> None:
        self.inner = inner

    def wake(self) -> None:
        after_change(self.inner.wake)

    def problem(self) -> str | None:
        return self.inner.problem()


def after_change(action: Callable[[], None]) -> None:
    """Call it, once, when the change of this request is stored; now, outside of one."""
    change = current.get()
    if change is None:
        action()
    elif action not in change.then:
        change.then.append(action)


def nothing_changed() -> None:
    """Of the request that is being handled: there is nothing to keep or to write down."""
    if (change := current.get()) is not None:
        change.idle = True


def answer_is_secret(of: str) -> None:
    """Of the request that is being handled: its answer is shown once and kept nowhere. `of`: what it made."""
    if (change := current.get()) is not None:
        change.secret_of = of


def key_of(request: Request, who: Principal) -> str | None:
    """The digest under which an answer to this request is kept; None for a request without a key."""
    said = single_header(request.headers, KEY_HEADER)
    if said is None:
        return None
    if not _KEY.fullmatch(said):
        raise InvalidRequest.parameter(
            KEY_HEADER, f"{KEY_HEADER} must be 1 to 255 visible ASCII characters, such as a UUID"
        )
    return _digest(who.id or _ANONYMOUS, said)


def digest_of(request: Request, body: bytes) -> str:
    """What is asked: two requests with the same digest ask the same."""
    query = sorted(request.query_params.multi_items())
    plain = json.dumps(json.loads(body), sort_keys=True) if body else ""
    return _digest(request.method, request.url.path, json.dumps(query), plain)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
