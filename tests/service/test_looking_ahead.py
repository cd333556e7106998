"""A job that waits for its first worker is searched as far as that goes without one."""

from __future__ import annotations

import time

import pytest
from service_harness import HARDWARE, OTHER_FACTS, attach, searched, settle, stored_job
from shepherding import Children, supervised, until
from test_end_to_end import LAYER, House, house

from tilewright import topi, tune
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target, detect
from tilewright.db import Store, open_store
from tilewright.service.client import Client
from tilewright.service.search_process import WAITS

__all__ = ["house"]

REST = f"import sys; sys.exit({WAITS})"


def measured(store: Store, count: int) -> None:
    """A job of the 64-cubed matmul with so many results, whose worker is gone."""
    worker = attach(store)
    job = searched(store, count)
    settle(store, [1e-5 + n * 1e-6 for n in range(count)], worker)
    store.cancel_job(job.id)
    store.set_worker_state(worker.id, "offline", "it left")


def test_a_job_that_may_be_known_already_is_searched_once_while_it_waits_and_again_with_a_worker(
    store: Store,
) -> None:
    measured(store, 2)
    job, children = stored_job(store), Children(REST)
    with supervised(store, children):
        until(lambda: bool(children.started))
        time.sleep(0.3)
        assert (children.started, store.job(job.id).state) == ([(job.id, 1)], "waiting")
        children.script = "import time; time.sleep(60)"
        attach(store, session="6" * 32)
        until(lambda: len(children.started) == 2)
    assert (children.started[1], store.job(job.id).state) == ((job.id, 2), "running")


def test_a_job_with_suggestions_is_searched_while_it_waits_whatever_is_known(store: Store) -> None:
    spec = '{"suggestions": [{"sketch": "nope", "knobs": {}}]}'
    job, children = stored_job(store, hardware=None, spec=spec), Children(REST)
    with supervised(store, children):
        until(lambda: bool(children.started))
    assert store.job(job.id).hardware is None


@pytest.mark.parametrize("more", [{"history": "ignore"}, {"hardware": None, "trials": 3}])
def test_a_job_that_nothing_known_can_answer_only_waits(store: Store, more: dict[str, object]) -> None:
    measured(store, 2)
    job, children = stored_job(store, **more), Children(REST)  # type: ignore[arg-type]
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "waiting")
        time.sleep(0.2)
    assert (children.started, store.job(job.id).hardware) == ([], None if "hardware" in more else HARDWARE)


def test_a_job_without_hardware_takes_the_only_kind_ever_attached_if_that_answers_it(store: Store) -> None:
    measured(store, 2)
    job, children = stored_job(store, hardware=None, trials=2), Children(REST)
    with supervised(store, children):
        until(lambda: bool(children.started))
    assert store.job(job.id).hardware == HARDWARE


def test_of_two_kinds_that_were_attached_none_is_taken(store: Store) -> None:
    measured(store, 2)
    other = attach(store, "w2", OTHER_FACTS)
    store.set_worker_state(other.id, "offline", "it left")
    job, children = stored_job(store, hardware=None, trials=2), Children(REST)
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "waiting")
        time.sleep(0.2)
    assert (children.started, store.job(job.id).hardware) == ([], None)


def test_a_job_that_history_answers_is_complete_without_a_worker(house: House) -> None:
    func = topi.create(LAYER)
    with open_store(house.db) as store:
        found = tune(func, trials=4, store=store, progress=False)
    house.serve()
    with Client(house.url) as client:
        job = client.submit(LAYER, trials=4, hardware=detect().key)
        done = client.job(job.id, wait=60)
        more = client.submit(LAYER, trials=6, hardware=detect().key).id
        until(lambda: client.job(more).progress.known == 4, 40.0)
        waits = client.job(more)
    assert found.best is not None
    assert (done.state, done.reason) == ("completed", "all 4 trials of the budget were measured before")
    assert (done.progress.done, done.progress.known) == (0, 4), house.logs()
    assert (waits.state, waits.progress.done) == ("waiting", 0)
    assert waits.reason == f"no worker for hardware {detect().key}; no worker is attached"


@pytest.mark.parametrize("hardware", [None, "f" * 64])
def test_a_sketch_that_is_none_fails_its_job_at_once_without_a_worker(
    house: House, hardware: str | None
) -> None:
    house.serve()
    with Client(house.url) as client:
        asked = {"sketch": "nope", "knobs": {}}
        job = client.submit(LAYER, trials=4, hardware=hardware, suggestions=[asked])
        assert job.state == "waiting"
        ended = client.job(job.id, wait=60)
    known = ", ".join(
        repr(sketch.name) for sketch in space_of(topi.create(LAYER), Target.parse("llvm")).sketches
    )
    reason = f"suggestions[0]: there is no sketch 'nope'; the sketches are {known}"
    assert (ended.state, ended.reason) == ("failed", reason), house.logs()
    assert known
