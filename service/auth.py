"""Who may do what: bearer tokens with scopes, and anonymous use of a server that only its own machine
reaches.

A request without a token is let in only where the socket is bound to loopback, the Host is a loopback name (a
page of the open web that resolves to 127.0.0.1 says another), the Origin is too, and no proxy stands in
front; and then only for jobs and schedules. A token that is wrong is 401 on every route, except the health
routes, which read no token at all so that they need no database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..db.errors import StoreUnavailable
from ..db.mark import Mark
from .errors import NotOwner, ScopeMissing, ServiceError, TokenNeeded, TokenWrong
from .problems import respond
from .settings import is_loopback
from .single_header import single_header

OPEN_PATHS = ("/livez", "/readyz", "/version")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="tilewright"'}
bearer = HTTPBearer(auto_error=False, description="tilewright token create --scope …")


class KnownToken(Protocol):
    """What the store tells of a token."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def scopes(self) -> Iterable[str]: ...
    @property
    def pool(self) -> str | None: ...
    @property
    def max_jobs(self) -> int | None: ...
    @property
    def max_trials(self) -> int | None: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def expires_at(self) -> float | None: ...


class TokenReader(Protocol):
    """The part of the store that knows tokens."""

    def token_by_secret(self, secret: str) -> KnownToken | None:
        """The token with this secret; None when there is none, it expired, or it was revoked."""

    def now(self) -> float:
        """The clock by which it expires."""


class TokenCache(Protocol):
    """Tokens, and a mark of the store that they are read at."""

    async def mark(self) -> Mark: ...

    async def by_secret(self, secret: str, mark: Mark) -> KnownToken | None: ...


class FailedLogins(Protocol):
    """Counts the wrong tokens of an address."""

    def take(self, caller: str) -> None:
        """Raises a ServiceError where there were too many."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a token, or nobody, with the reason why nobody is not enough here. `address`: from where."""

    name: str | None
    scopes: frozenset[str]
    distrust: str | None = None
    pool: str | None = None
    id: str | None = None
    address: str = ""
    max_jobs: int | None = None
    max_trials: int | None = None
    rate: float | None = None

    @property
    def caller(self) -> str:
        """Whose requests are counted together."""
        return f"address {self.address}" if self.id is None else self.id

    def check_owns(self, owner: str | None, what: str) -> None:
        """Raises NotOwner: what a token made is changed by that token or an administrator, and what nobody in
        particular made by everyone who may change such things."""
        if owner is None or owner == self.id or "admin" in self.scopes:
            return
        raise NotOwner(f"{what} was made by another token, {owner}: that one or an administrator changes it")


class Authentication:
    """ASGI middleware: reads the token of each request and puts its Principal in `state["principal"]`."""

    def __init__(self, app: ASGIApp, tokens: TokenCache, host: str, failed: FailedLogins) -> None:
        self._app = app
        self._tokens = tokens
        self._host = host
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        try:
            principal = await self._principal(Headers(scope=scope), address_of(scope), state)
        except (ServiceError, StoreUnavailable) as error:
            await respond(error, scope)(scope, receive, send)
            return
        state["principal"] = principal
        await self._app(scope, receive, send)

    async def _principal(self, headers: Headers, address: str, state: dict[str, Any]) -> Principal:
        authorization = single_header(headers, "Authorization")
        if authorization is None:
            return Principal(None, frozenset(), _distrust(headers, self._host), address=address)
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise TokenWrong("the Authorization header must be 'Bearer <token>'", headers=_CHALLENGE)
        # The route may answer from what is kept at this mark, too.
        state["mark"] = mark = await self._tokens.mark()
        token = await self._tokens.by_secret(secret.strip(), mark)
        if token is None:
            self._failed.take(f"address {address}")
            raise TokenWrong(
                "the token is unknown, revoked or expired; an administrator makes one with "
                "`tilewright token create`",
                headers=_CHALLENGE,
            )
        return Principal(
            token.name,
            frozenset(token.scopes),
            pool=token.pool,
            id=token.id,
            address=address,
            max_jobs=token.max_jobs,
            max_trials=token.max_trials,
            rate=token.rate,
        )


class Requires:
    """A dependency: the request's Principal has one of `scopes` (`admin` has them all), or is nobody and may
    be.

    Raises TokenNeeded (401) and ScopeMissing (403), each saying what would do.
    """

    def __init__(self, *scopes: str, anonymous: bool = False) -> None:
        self._scopes = scopes
        self.anonymous = anonymous
        self.needed = " or ".join(dict.fromkeys((*scopes, "admin")))

    # Asynchronous, though it waits for nothing: others are called in a thread of their own.
    async def __call__(
        self, request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
    ) -> Principal:
        principal: Principal = request.state.principal
        if principal.name is None:
            if self.anonymous and principal.distrust is None:
                return principal
            why = principal.distrust if self.anonymous else "worker and token routes always do"
            raise TokenNeeded(
                f"this request needs a token of scope {self.needed}: {why}; "
                "send it as 'Authorization: Bearer <token>'",
                headers=_CHALLENGE,
            )
        if not principal.scopes.intersection((*self._scopes, "admin")):
            raise ScopeMissing(
                f"this request needs a token of scope {self.needed}; "
                f"token {principal.name!r} has {', '.join(sorted(principal.scopes)) or 'none'}"
            )
        return principal


def address_of(scope: Scope) -> str:
    """Where a request came from; behind a proxy, the proxy."""
    client = scope.get("client")
    return str(client[0]) if client else ""


_OF_PROXIES = frozenset({"forwarded", "via", "x-real-ip"})


def _distrust(headers: Headers, bound_host: str) -> str | None:
    """Why a request without a token is not surely of this machine, or None."""
    if not is_loopback(bound_host):
        return f"the server is bound to {bound_host}, not to loopback"
    host = single_header(headers, "Host") or ""
    if not is_loopback(_hostname(f"//{host}")):
        return f"its Host header says {host[:80]!r}, not a loopback name"
    for name in headers:
        if name in _OF_PROXIES or name.startswith("x-forwarded-"):
            return f"its {name} header says that it came through a proxy"
    origin = single_header(headers, "Origin")
    if origin is not None and not is_loopback(_hostname(origin)):
        return f"its Origin header says {origin[:80]!r}, not a loopback name"
    return None


def _hostname(url: str) -> str:
    """The name of a host; none where what follows it is no port."""
    try:
        split = urlsplit(url)
        return (split.hostname or "") if split.port != 0 else ""
    except ValueError:
        return ""


CanWriteJobs = Annotated[Principal, Depends(Requires("jobs:write", anonymous=True))]
CanReadJobs = Annotated[Principal, Depends(Requires("jobs:write", "schedules:read", anonymous=True))]
CanReadSchedules = Annotated[
    Principal, Depends(Requires("schedules:read", "schedules:write", "jobs:write", anonymous=True))
]
CanWriteSchedules = Annotated[Principal, Depends(Requires("schedules:write", anonymous=True))]
CanReadWorkers = Annotated[Principal, Depends(Requires("worker", "jobs:write"))]
IsWorker = Annotated[Principal, Depends(Requires("worker"))]
IsBuilder = Annotated[Principal, Depends(Requires("builder"))]
IsDevice = Annotated[Principal, Depends(Requires("worker", "builder"))]
IsAdmin = Annotated[Principal, Depends(Requires("admin"))]
