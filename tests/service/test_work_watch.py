from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from service_harness import HARDWARE, OTHER_HARDWARE

from tilewright.db import StoreUnavailable
from tilewright.db.fleet_records import OpenWork, Worker
from tilewright.service.work_watch import WorkWatch

ANY = OpenWork(HARDWARE, None, frozenset())
LONG = 30.0


@dataclass
class FakeStore:
    """Says what work is open, and counts how often it is asked."""

    work: list[OpenWork] = field(default_factory=list)
    trouble: StoreUnavailable | None = None
    asked: int = 0

    def open_work(self) -> list[OpenWork]:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return self.work


def worker(n: int, hardware: str = HARDWARE) -> Worker:
    return Worker(
        f"worker_{n}", f"w{n}", "s" * 32, hardware, 1, "{}", "{}", "7", None, "online", "", None, 0, 0
    )


def run(body: Callable[[FakeStore, WorkWatch], Coroutine[Any, Any, None]]) -> None:
    store = FakeStore()
    asyncio.run(body(store, WorkWatch(store, threading.Event())))  # type: ignore[arg-type]


def test_a_turn_comes_once_there_is_work_that_fits() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        mine = asyncio.create_task(watch.turn(worker(1), LONG))
        other = asyncio.create_task(watch.turn(worker(2, OTHER_HARDWARE), 0.3))
        while store.asked < 2:
            await asyncio.sleep(0.01)
        assert not mine.done()
        store.work = [ANY]
        assert (await mine, await other) == (True, False)

    run(body)


def test_eight_are_told_of_work_at_a_time_those_first_who_have_waited_longest() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        tasks = [asyncio.create_task(watch.turn(worker(n), LONG)) for n in range(20)]
        while store.asked < 1:
            await asyncio.sleep(0.01)
        store.work = [ANY]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert [task.done() for task in tasks] == [True] * 8 + [False] * 12
        await asyncio.wait_for(asyncio.gather(*tasks), LONG)

    run(body)


def test_a_hundred_who_wait_cost_the_store_as_much_as_one() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        answers = await asyncio.gather(*(watch.turn(worker(n), 0.5) for n in range(100)))
        assert not any(answers)
        assert store.asked <= 12
        asked = store.asked
        await asyncio.sleep(0.2)
        assert store.asked <= asked + 1  # nobody waits: nobody looks

    run(body)


def test_a_worker_that_is_let_go_from_another_thread_waits_no_longer_and_others_do() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        watch.let_go("worker_1")  # nobody waits yet
        mine, other = (asyncio.create_task(watch.turn(worker(n), LONG)) for n in (1, 2))
        while store.asked < 1:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(watch.let_go, "worker_1")
        assert await asyncio.wait_for(mine, LONG / 2) is False
        assert not other.done()
        store.work = [ANY]
        assert await other is True

    run(body)


def test_those_who_wait_are_let_go_when_the_server_stops() -> None:
    stopping = threading.Event()

    async def body() -> None:
        watch = WorkWatch(FakeStore(), stopping)  # type: ignore[arg-type]
        waiting = asyncio.create_task(watch.turn(worker(1), LONG))
        await asyncio.sleep(0.1)
        stopping.set()
        assert await asyncio.wait_for(waiting, LONG / 2) is False

    asyncio.run(body())


def test_a_store_that_is_away_is_told_to_all_who_wait() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        store.trouble = StoreUnavailable("the database is away")
        told = await asyncio.gather(*(watch.turn(worker(n), LONG) for n in range(3)), return_exceptions=True)
        assert [str(error) for error in told] == ["the database is away"] * 3

    run(body)


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_wait_ends_in_time(seconds: float) -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        assert await watch.turn(worker(1), seconds) is False

    run(body)


def test_what_was_seen_last_is_known_without_another_look() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        assert not watch.saw_work(worker(1))
        store.work = [ANY]
        assert await watch.turn(worker(1), LONG)
        assert watch.saw_work(worker(2))
        assert not watch.saw_work(worker(3, OTHER_HARDWARE))

    run(body)


def test_four_claim_at_a_time_and_who_has_no_turn_in_time_does_not() -> None:
    async def body(store: FakeStore, watch: WorkWatch) -> None:
        async with contextlib.AsyncExitStack() as stack:
            turns = [await stack.enter_async_context(watch.may_claim(0.05)) for _ in range(5)]
            assert turns == [True] * 4 + [False]
        async with watch.may_claim(0.05) as mine:
            assert mine

    run(body)
