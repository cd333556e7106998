"""Answers that are kept for as long as nothing in the store has changed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool

from ..db.mark import Mark

_MOST = 4096
T = TypeVar("T")


class Changing(Protocol):
    """The part of the store that says whether anything has changed."""

    def mark(self) -> Mark: ...


class Fresh:
    """Keeps answers of this process, and hands one out only where a look at the store, begun after it was
    asked for, shows that the store is what it was: so that what another process wrote is seen at once.

    Those who ask at the same time share a look. For the event loop alone."""

    def __init__(self, store: Changing) -> None:
        self._store = store
        self._kept: OrderedDict[Hashable, tuple[str, Any]] = OrderedDict()
        self._looking: asyncio.Task[Mark] | None = None
        self._next: asyncio.Task[Mark] | None = None

    async def mark(self) -> Mark:
        """The store's mark, read after this call."""
        if self._next is None:
            self._next = asyncio.create_task(self._look(self._looking))
        return await asyncio.shield(self._next)

    async def get(self, key: Hashable, make: Callable[[], T], mark: str | None = None) -> T:
        """What `make` answers, in another thread, or what it answered when the store was the same.

        `mark` is one that was read for this request already.
        """
        now = mark or await self.mark()
        kept = self._kept.get(key)
        if kept is not None and kept[0] == now:
            self._kept.move_to_end(key)
            answer: T = kept[1]
            return answer
        # Read after the mark: at worst it is newer than its mark says, and is made again in vain.
        answer = await run_in_threadpool(make)
        self._kept[key] = now, answer
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return answer

    async def _look(self, before: asyncio.Task[Mark] | None) -> Mark:
        """One look at a time: those who come while one is under way share the next."""
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._looking, self._next = self._next, None
        return await run_in_threadpool(self._store.mark)
