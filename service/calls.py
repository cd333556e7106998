"""What a client's methods are made of: each is described once, and both clients take it from there.

A method is a generator of calls (`Flow`) or a list in pages (`Pages`); `Verb` and `AsyncVerb`, `Listing` and
`AsyncListing` make methods of them that wait or await. Types go through: the parameters of a description are
those of the method.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import httpx

from .answering import answered, answered_async
from .exchange import Exchange, Steps

P = ParamSpec("P")
T = TypeVar("T")

KEY_HEADER = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `extra`: seconds that the server may take longer, since it was asked to wait; `within`: all
    tries end then, the look-up of a name included. `retry` False: one try."""

    method: str
    path: str
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    idempotent: bool | None = None
    extra: float = 0.0
    within: float | None = None
    retry: bool = True

    def on(self, exchange: Exchange) -> Steps[httpx.Response]:
        timeout = exchange.timeout + self.extra if self.within is None else self.within
        return exchange.requesting(
            self.method,
            self.path,
            json=self.json,
            params=self.params,
            headers=self.headers,
            idempotent=self.idempotent,
            timeout=timeout,
            retry=self.retry,
        )


def get(path: str, params: Mapping[str, Any] | None = None, extra: float = 0.0) -> Call:
    return Call("GET", path, params=params or {}, extra=extra)


def change(path: str, body: Any = None, **more: Any) -> Call:
    """A POST under an Idempotency-Key of its own, so that each try of it is the same request."""
    return Call("POST", path, body, headers={KEY_HEADER: str(uuid.uuid4())}, idempotent=True, **more)


Flow = Generator[Call, httpx.Response, T]


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list in pages: `call` asks for the one with this token, `read` gives its entries and the next token
    of what `said` takes from the answer, its JSON."""

    call: Callable[[str | None], Call]
    read: Callable[[Any], tuple[Iterable[T], str | None]]
    said: Callable[[httpx.Response], Any] = httpx.Response.json

    def page(self, token: str | None) -> Flow[tuple[Iterable[T], str | None]]:
        return self.read(self.said((yield self.call(token))))


class Doing(Protocol):
    """A client that waits."""

    def do(self, call: Call) -> httpx.Response: ...


class Awaiting(Protocol):
    """A client that awaits."""

    async def do(self, call: Call) -> httpx.Response: ...


class Verb(Generic[P, T]):
    """A method of a client that waits."""

    def __init__(self, describe: Callable[P, Flow[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Doing, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: Doing | None, owner: type) -> Self | Callable[P, T]:
        if client is None:
            return self

        @functools.wraps(self._describe)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return answered(self._describe(*args, **kwargs), client.do)

        return method


class AsyncVerb(Generic[P, T]):
    """The same method of a client that awaits."""

    def __init__(self, describe: Callable[P, Flow[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Awaiting | None, owner: type) -> Self | Callable[P, Coroutine[Any, Any, T]]:
        if client is None:
            return self

        @functools.wraps(self._describe)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await answered_async(self._describe(*args, **kwargs), client.do)

        return method


class Listing(Generic[P, T]):
    """A method of a client that waits, which gives a list page by page."""

    def __init__(self, describe: Callable[P, Pages[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Doing, owner: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, client: Doing | None, owner: type) -> Self | Callable[P, Iterator[T]]:
        if client is None:
            return self

        @functools.wraps(self._describe)
        def method(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            pages = self._describe(*args, **kwargs)
            token: str | None = None
            while True:
                entries, token = answered(pages.page(token), client.do)
                yield from entries
                if token is None:
                    return

        return method


class AsyncListing(Generic[P, T]):
    """The same method of a client that awaits."""

    def __init__(self, describe: Callable[P, Pages[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Awaiting | None, owner: type) -> Self | Callable[P, AsyncIterator[T]]:
        if client is None:
            return self

        @functools.wraps(self._describe)
        async def method(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
            pages = self._describe(*args, **kwargs)
            token: str | None = None
            while True:
                entries, token = await answered_async(pages.page(token), client.do)
                for entry in entries:
                    yield entry
                if token is None:
                    return

        return method
