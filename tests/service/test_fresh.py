from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field

import pytest

from tilewright.db import StoreUnavailable
from tilewright.db.mark import Mark
from tilewright.service.fresh import Fresh


@dataclass
class Marks:
    """A store that changes when a test says so; each look takes a moment."""

    state: int = 0
    looks: int = 0
    trouble: StoreUnavailable | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def mark(self) -> Mark:
        with self.lock:
            self.looks += 1
        seen = Mark(str(self.state))
        time.sleep(0.02)
        if self.trouble is not None:
            raise self.trouble
        return seen


def test_an_answer_is_made_once_while_nothing_changes_and_again_when_something_has() -> None:
    async def body() -> None:
        marks, made = Marks(), []
        fresh = Fresh(marks)

        def make() -> int:
            made.append(marks.state)
            return marks.state

        assert [await fresh.get("k", make) for _ in range(3)] == [0, 0, 0]
        assert made == [0]
        marks.state = 7
        assert await fresh.get("k", make) == 7
        assert made == [0, 7]

    asyncio.run(body())


def test_those_who_ask_together_share_a_look() -> None:
    async def body() -> None:
        marks = Marks()
        fresh = Fresh(marks)
        await asyncio.gather(*(fresh.get("k", lambda: 1) for _ in range(50)))
        assert marks.looks <= 2

    asyncio.run(body())


def test_a_look_that_began_before_the_question_is_not_taken_for_an_answer() -> None:
    async def body() -> None:
        marks = Marks()
        fresh = Fresh(marks)
        early = asyncio.create_task(fresh.mark())
        while marks.looks == 0:
            await asyncio.sleep(0.001)
        marks.state = 1  # acknowledged while that look is under way
        assert (await fresh.mark(), await early) == ("1", "0")

    asyncio.run(body())


def test_a_store_that_is_away_is_an_error_and_not_an_old_answer() -> None:
    async def body() -> None:
        marks = Marks()
        fresh = Fresh(marks)
        await fresh.get("k", lambda: 1)
        marks.trouble = StoreUnavailable("away")
        with pytest.raises(StoreUnavailable, match="away"):
            await fresh.get("k", lambda: 1)
        marks.trouble = None
        assert await fresh.get("k", lambda: 2) == 1

    asyncio.run(body())


def test_no_more_answers_are_kept_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.service.fresh._MOST", 2)

    async def body() -> None:
        made: list[int] = []
        fresh = Fresh(Marks())

        def make(n: int) -> int:
            made.append(n)
            return n

        for n in (1, 2, 3, 3, 1):
            assert await fresh.get(n, lambda n=n: make(n)) == n  # type: ignore[misc]
        assert made == [1, 2, 3, 1]

    asyncio.run(body())
