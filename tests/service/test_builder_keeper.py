"""The server's own builder: there while a device that only runs is attached, and replaced when it dies."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import psutil
import pytest
from service_harness import FACTS, HARDWARE, searched

from tilewright.db import Store
from tilewright.db.fleet_records import NewWorker
from tilewright.service.builder_keeper import BuilderKeeper

SLEEP = "import time; time.sleep(60)"


@dataclass
class Kept:
    """A keeper whose builders run `program`, with the names that they were given."""

    store: Store
    program: str = SLEEP
    names: list[str] = field(default_factory=list)
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        self.keeper = BuilderKeeper(self.store, self._command, interval=0.02, idle_seconds=self.idle_seconds)

    def _command(self, name: str) -> Sequence[str]:
        self.names.append(name)
        return [sys.executable, "-c", self.program]


@pytest.fixture
def keep(store: Store) -> Iterator[Callable[..., Kept]]:
    made: list[Kept] = []

    def begin(**more: object) -> Kept:
        kept = Kept(store, **more)  # type: ignore[arg-type]
        made.append(kept)
        kept.keeper.start()
        return kept

    yield begin
    for kept in made:
        kept.keeper.stop()
        assert kept.keeper.pid is None


def attach(store: Store, run_only: bool) -> str:
    store.put_hardware(HARDWARE, json.dumps(FACTS))
    new = NewWorker("board", "s" * 32, HARDWARE, 1, "{}", "{}", "7", run_only=run_only)
    return store.register_worker(new).id


def until(holds: Callable[[], object]) -> None:
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_no_builder_runs_for_workers_that_compile(store: Store, keep: Callable[..., Kept]) -> None:
    attach(store, run_only=False)
    kept = keep()
    time.sleep(0.2)
    assert kept.names == []


def test_a_builder_runs_once_a_device_is_attached(store: Store, keep: Callable[..., Kept]) -> None:
    kept = keep()
    attach(store, run_only=True)
    until(lambda: kept.keeper.pid)
    assert len(kept.names) == 1


def test_the_builds_of_one_that_was_killed_go_back_at_once(store: Store, keep: Callable[..., Kept]) -> None:
    searched(store, 1)
    attach(store, run_only=True)
    kept = keep()
    until(lambda: kept.keeper.pid)
    (name,), pid = kept.names, kept.keeper.pid
    assert [item.attempt for item in store.claim_builds(name, 16, 600.0)] == [1, 1]
    psutil.Process(pid).kill()
    until(lambda: len(kept.names) == 2 and kept.keeper.pid)
    assert [item.attempt for item in store.claim_builds(kept.names[1], 16, 600.0)] == [2, 2]


def test_one_that_dies_at_once_is_not_started_all_the_time(store: Store, keep: Callable[..., Kept]) -> None:
    attach(store, run_only=True)
    kept = keep(program="raise SystemExit('no')")
    time.sleep(1.5)
    assert 1 <= len(kept.names) <= 4


def test_one_that_nobody_needs_is_ended(store: Store, keep: Callable[..., Kept]) -> None:
    worker = attach(store, run_only=True)
    kept = keep(idle_seconds=0.1)
    until(lambda: kept.keeper.pid)
    store.leave(worker, "s" * 32)
    until(lambda: kept.keeper.pid is None)
