"""How a client speaks HTTP, without speaking it: a handshake that knows a tilewright server, safe retries,
problems as exceptions. Whoever drives it, waiting or awaiting, sends what it yields."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from ..measure.messages import NotATilewright, SourceUnreachable
from .bounded_http import TimeUp, TooLong
from .settings import is_loopback

T = TypeVar("T")

_ATTEMPTS = 4
_FIRST_PAUSE = 0.1
HANDSHAKE_SECONDS = 4.0
_HANDSHAKE_BYTES = 64 << 10
# A page of 500 trials with the largest traces that a search makes is a tenth of this.
_MOST_BYTES = 64 << 20
_AWAY = (502, 503, 504)


class ApiError(Exception):
    """The server refused a request. `code` is the stable word of its problem document."""

    def __init__(self, status: int, code: str, detail: str, problem: Mapping[str, Any]) -> None:
        super().__init__(status, code, detail, problem)
        self.status = status
        self.code = code
        self.detail = detail
        self.problem = problem

    def __str__(self) -> str:
        return self.detail


class InsecureToken(Exception):
    """A token would travel in the clear to another machine."""


@dataclass(frozen=True, slots=True)
class Send:
    """A request to be sent: what is yielded is answered with the whole response, or thrown its error."""

    method: str
    url: str
    seconds: float
    most_bytes: int
    json: Any = None
    content: bytes | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to let pass."""

    seconds: float


Steps = Generator[Send | Pause, Any, T]


class Exchange:
    """One server: where it is, with what token.

    Its steps raise SourceUnreachable (a ConnectionError) when nothing answers, NotATilewright when something
    else does, and ApiError for a problem document.
    """

    def __init__(self, url: str, token: str | None, *, insecure_http: bool, timeout: float) -> None:
        self.url = url.rstrip("/")
        parts = _split(self.url)
        self.loopback = is_loopback(parts.hostname or "")
        if token and parts.scheme == "http" and not self.loopback and not insecure_http:
            raise InsecureToken(
                f"refusing to send the token over http to {parts.hostname}: anyone on the way can read it; "
                "use https, or allow it with --insecure-http (insecure_http=True)"
            )
        self.timeout = timeout
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.known = False

    def requesting(
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
    ) -> Steps[httpx.Response]:
        """The answer, a 2xx or 304, within `timeout` seconds for all tries together.

        Tries again when the request cannot have had an effect, or may have it twice (`idempotent`, by default
        whether it is a GET), after pauses that grow and differ from client to client, or as long as the
        server says."""
        limit = self.timeout if timeout is None else timeout
        yield from self.shaking_hands(min(limit, HANDSHAKE_SECONDS))
        again = method == "GET" if idempotent is None else idempotent
        ends = time.monotonic() + limit
        pause = _FIRST_PAUSE
        for attempt in range(1, _ATTEMPTS + 1):
            last = attempt == _ATTEMPTS or not retry or time.monotonic() + pause >= ends
            wanted = 0.0
            try:
                response = yield Send(
                    method,
                    self.url + path,
                    max(0.001, ends - time.monotonic()),
                    _MOST_BYTES,
                    json,
                    content,
                    given(params),
                    {**self.headers, **(headers or {})},
                )
            except TimeUp as error:
                raise SourceUnreachable(
                    f"{self.url} gave no whole answer to {method} {path} within {limit:g} s"
                ) from error
            except TooLong as error:
                raise NotATilewright(f"{error} to {method} {path}", self.url) from error
            except httpx.ConnectError as error:
                if last:
                    raise self.unreachable(error) from error
            except httpx.HTTPError as error:
                if last or not again:
                    raise self.unreachable(error) from error
            else:
                wanted = _wanted_pause(response)
                late = time.monotonic() + wanted >= ends
                if not _passes(response) or last or late or not again:
                    return self.checked(response)
            yield Pause(max(wanted, pause * random.uniform(0.5, 1.0)))
            pause *= 3
        raise AssertionError("the last attempt returns or raises")

    def shaking_hands(self, timeout: float = HANDSHAKE_SECONDS) -> Steps[None]:
        """Make sure, once, that a tilewright server answers, before the token is sent to it."""
        if self.known:
            return
        try:
            response = yield Send("GET", f"{self.url}/version", timeout, _HANDSHAKE_BYTES)
        except TooLong as error:
            raise NotATilewright(f"{error} at /version", self.url) from error
        except httpx.ConnectError as error:
            raise self.unreachable(error) from error
        except (TimeUp, httpx.TimeoutException) as error:
            raise SourceUnreachable(
                f"{self.url} gave no whole answer to GET /version within {timeout:g} s; "
                "is it the address of a tilewright server?"
            ) from error
        except httpx.HTTPError as error:
            if _broke_off(error):
                said = str(self.unreachable(error)).rstrip(".")
                raise SourceUnreachable(f"{said}; its server is not up, or does not speak HTTP") from error
            raise NotATilewright(f"something that does not speak HTTP ({error})", self.url) from error
        self._recognise(response)
        self.known = True

    def _recognise(self, response: httpx.Response) -> None:
        try:
            said = response.json()
        except ValueError:
            said = None
        if response.status_code == 200 and isinstance(said, dict) and said.get("service") == "tilewright":
            return
        if response.status_code in _AWAY:
            raise SourceUnreachable(f"{self.url} answered {response.status_code}: its server is not up")
        name = response.headers.get("server")
        kind = response.headers.get("content-type", "no content type").split(";")[0]
        found = (
            f"an HTTP server{f' ({name})' if name else ''} that answers {response.status_code} with {kind}"
        )
        raise NotATilewright(f"{found} at /version", self.url)

    def checked(self, response: httpx.Response) -> httpx.Response:
        """`response` when it is a success; otherwise the exception that its problem document names."""
        if response.is_success or response.status_code == 304:
            return response
        try:
            problem = response.json()
        except ValueError:
            problem = None
        if not isinstance(problem, dict) or "code" not in problem:
            if response.status_code in _AWAY:
                # A proxy in front of a server that restarts says so.
                raise SourceUnreachable(f"{self.url} answered {response.status_code}: its server is not up")
            raise NotATilewright(
                f"an answer {response.status_code} to {response.request.url.path} without a problem document",
                self.url,
            )
        raise ApiError(response.status_code, str(problem["code"]), str(problem.get("detail", "")), problem)

    def unreachable(self, error: httpx.HTTPError) -> SourceUnreachable:
        what = "nothing answers" if isinstance(error, httpx.ConnectError) else "the connection broke"
        return SourceUnreachable(f"{what} at {self.url}: {error or type(error).__name__}")


def _broke_off(error: httpx.HTTPError) -> bool:
    """Whether a connection ended before its answer: so does one to a balancer whose servers are down, and one
    to a server that is killed."""
    if isinstance(error, httpx.NetworkError):
        return True
    # The libraries below tell it from an answer that is no HTTP by these words alone.
    said = ("Server disconnected", "peer closed connection")
    return isinstance(error, httpx.RemoteProtocolError) and str(error).startswith(said)


def _passes(response: httpx.Response) -> bool:
    """Whether what is refused now may be answered in a while."""
    if response.status_code in (*_AWAY, 429):
        return True
    # The request that an earlier try sent is still being worked on.
    return response.status_code == 409 and b'"in-flight"' in response.content


def _wanted_pause(response: httpx.Response) -> float:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() and len(said) < 6 else 0.0


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(f"{url!r} is no server's URL; expected one such as http://127.0.0.1:8470")
    return parts


def given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (params or {}).items() if v is not None}
