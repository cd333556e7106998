"""Whose turn it is: fair shares over jobs and over those who made them, and what a worker may serve."""

import json
from collections import Counter

import pytest
from sqlalchemy import Engine, event

BATCH = 8


@pytest.fixture
def served(scene, failure):
    """Gives a worker one lease of up to `items` trials, which it settles; the jobs get as many new ones."""
    numbers = Counter()

    def serve(worker, items=BATCH, refill=True):
        lease = scene.store.claim(worker.id, worker.session, worker.hardware, items, 30.0)
        if lease is None:
            return Counter()
        scene.store.settle(lease.id, [failure(item) for item in lease.items])
        given = Counter(item.job for item in lease.items)
        for job, count in given.items() if refill else ():
            first = 1_000 + numbers[job]
            numbers[job] += count
            scene.add(scene.store.job(job), range(first, first + count), tag=job)
        return given

    return serve


def job_of(scene, **more):
    """A job with one batch queued; candidates are its own, so that no two jobs share one."""
    return scene.searched(BATCH, tag=f"j{len(scene.store.unfinished_jobs())}-", **more).id


def spread(given, jobs):
    return max(given[job] for job in jobs) / min(given[job] for job in jobs)


@pytest.mark.parametrize("workers", [1, 10])
def test_property_14_ten_jobs_get_equal_shares(scene, served, workers):
    jobs = [job_of(scene) for _ in range(10)]
    rigs = [scene.worker(f"rig{n}") for n in range(workers)]
    given = sum((served(rigs[n % workers]) for n in range(40)), Counter())
    assert (sum(given.values()), spread(given, jobs) <= 1.2) == (40 * BATCH, True)


def test_property_14_a_step_of_priority_is_twice_the_share(scene, served):
    low, normal, high = (job_of(scene, priority=n) for n in (-1, 0, 1))
    given = sum((served(scene.worker()) for _ in range(35)), Counter())
    assert [given[job] // BATCH for job in (low, normal, high)] == [5, 10, 20]


def test_property_14_the_lowest_priority_still_advances_beside_the_highest(scene, served):
    low = scene.searched(1, tag="low", priority=-4).id
    high = scene.searched(64, tag="high", priority=4).id
    given = sum((served(scene.worker(), 64) for _ in range(14)), Counter())
    assert (given[low], given[high]) == (3, 11 * 64)


def test_property_14_a_long_job_does_not_starve_a_short_one(scene, served):
    rig = scene.worker()
    long = scene.searched(600, tag="long").id
    short = job_of(scene)
    first = [served(rig, refill=False) for _ in range(2)]
    assert [list(each) for each in first] == [[long], [short]]


def test_property_14_a_late_job_neither_waits_for_the_others_nor_they_for_it(scene, served):
    rig = scene.worker()
    early = [job_of(scene) for _ in range(2)]
    for _ in range(20):
        served(rig)
    late = job_of(scene)
    given = sum((served(rig) for _ in range(15)), Counter())
    assert [given[job] // BATCH for job in (*early, late)] == [5, 5, 5]


def test_property_14_who_had_nothing_to_measure_does_not_save_up(scene, served):
    rig = scene.worker()
    idle, busy = job_of(scene), job_of(scene)
    assert list(served(rig, refill=False)) == [idle]
    for _ in range(20):
        served(rig)
    scene.add(scene.store.job(idle), range(100, 100 + BATCH), tag="again")
    given = sum((served(rig) for _ in range(10)), Counter())
    assert [given[job] // BATCH for job in (idle, busy)] == [6, 4]  # one lease ahead, not 20


def test_property_14_a_job_that_was_paused_does_not_save_up(scene, served):
    rig = scene.worker()
    paused, busy = scene.searched(80, tag="long").id, job_of(scene)
    scene.store.pause_job(paused)
    for _ in range(10):
        served(rig)
    scene.store.resume_job(paused)
    given = sum((served(rig, refill=True) for _ in range(6)), Counter())
    assert [given[job] // BATCH for job in (paused, busy)] == [4, 2]  # one lease ahead, not ten


def test_property_14_a_job_with_few_trials_left_leaves_the_rest_to_the_others(scene, served):
    rig = scene.worker()
    few = scene.searched(2, tag="few").id
    jobs = [job_of(scene) for _ in range(3)]
    given = served(rig, refill=False) + sum((served(rig) for _ in range(30)), Counter())
    assert (given[few], spread(given, jobs)) == (2, 1.0)


def test_property_14_shares_are_those_of_owners_first_and_of_their_jobs_then(scene, served):
    many = [job_of(scene, account="a") for _ in range(4)]
    one = job_of(scene, account="b")
    given = sum((served(scene.worker()) for _ in range(40)), Counter())
    assert ([given[job] // BATCH for job in many], given[one] // BATCH) == ([5, 5, 5, 5], 20)


def test_property_14_priority_takes_nothing_from_other_owners(scene, served):
    proud, modest = job_of(scene, account="a", priority=4), job_of(scene, account="b", priority=-4)
    given = sum((served(scene.worker()) for _ in range(20)), Counter())
    assert (given[proud], given[modest]) == (10 * BATCH, 10 * BATCH)


def test_a_late_owner_neither_waits_for_the_others_nor_they_for_it(scene, served):
    early = job_of(scene, account="a")
    for _ in range(20):
        served(scene.worker())
    late = job_of(scene, account="b")
    given = sum((served(scene.worker()) for _ in range(10)), Counter())
    assert (given[early], given[late]) == (5 * BATCH, 5 * BATCH)


def test_trials_that_come_back_unmeasured_cost_their_job_nothing(scene, served):
    unlucky, other = job_of(scene, labels='{"a": "1"}'), job_of(scene, labels='{"b": "1"}')
    for _ in range(6):
        scene.store.release(scene.claim(scene.worker("flapping", labels='{"a": "1"}')).id)
    rig = scene.worker(labels='{"a": "1", "b": "1"}')
    given = sum((served(rig) for _ in range(4)), Counter())
    assert [given[job] // BATCH for job in (unlucky, other)] == [2, 2]


def test_final_rounds_cost_their_job_its_share(scene, served, success):
    rig = scene.worker()
    job, other = job_of(scene), job_of(scene)
    lease = scene.claim(rig)
    scene.store.settle(lease.id, [success(item) for item in lease.items])
    scene.store.time_again(job, 1, 0, [f"{job}.{n}" for n in range(BATCH)])
    assert list(served(rig, refill=False)) == [job]
    scene.add(scene.store.job(job), range(100, 100 + BATCH), tag="more")
    assert [list(served(rig)) for _ in range(2)] == [[other], [other]]


def statements_of_a_claim(scene, others):
    """With so many owners whose jobs have nothing queued and who were given less than the one that has."""
    job = scene.searched(65, tag=f"of {others} ", account="served much", trials=65)
    scene.claim(scene.worker(f"first of {others}"), 64)
    for n in range(others):
        scene.searched(1, tag=f"of {others} others {n}", account=f"idle {n}")
        assert scene.claim(scene.worker(f"rig {n} of {others}")).items[0].job != job.id
    said, last = [], scene.worker(f"last of {others}")
    listen = "before_cursor_execute", lambda conn, cursor, statement, *_: said.append(statement)
    event.listen(Engine, *listen)
    lease = scene.claim(last)
    event.remove(Engine, *listen)
    assert {item.job for item in lease.items} == {job.id}
    scene.store.finish_job(job.id, None, "cancelled", "")
    return said


def test_a_claim_makes_as_few_statements_whatever_the_number_of_owners(scene):
    few, many = statements_of_a_claim(scene, 1), statements_of_a_claim(scene, 30)
    assert (len(many), len(few) > 5) == (len(few), True)


def test_choosing_is_deterministic(scene, served):
    jobs = [job_of(scene) for _ in range(4)]
    order = [next(iter(served(scene.worker(f"rig{n % 3}")))) for n in range(8)]
    assert order == [*jobs, *jobs]


def test_a_job_is_measured_by_the_workers_of_its_pool_alone(scene):
    job = job_of(scene, pool="lab-b")
    assert all(scene.claims_nothing(scene.worker(f"rig-{pool}", pool=pool)) for pool in (None, "lab-a"))
    assert scene.claim(scene.worker("rig-b", pool="lab-b")).items[0].job == job


def test_a_job_of_no_pool_is_measured_by_any_worker(scene):
    job = job_of(scene)
    assert scene.claim(scene.worker(pool="lab-b")).items[0].job == job


@pytest.mark.parametrize(
    ("labels", "serves"),
    [
        ({}, False),
        ({"board": "rpi4"}, False),
        ({"board": "rpi5"}, False),
        ({"board": "RPI4", "rack": "3"}, False),
        ({"board": "rpi4", "rack": "3"}, True),
        ({"board": "rpi4", "rack": "3", "fan": "new"}, True),
    ],
)
def test_a_job_is_measured_by_workers_that_have_all_its_labels(scene, labels, serves):
    job_of(scene, labels='{"board": "rpi4", "rack": "3"}')
    assert scene.claims_nothing(scene.worker(labels=json.dumps(labels))) is not serves


def test_final_rounds_go_to_workers_with_the_labels_of_the_job_too(scene, success):
    job = scene.searched(1, labels='{"board": "rpi4"}')
    lease = scene.claim(scene.worker("board", labels='{"board": "rpi4"}'))
    scene.store.settle(lease.id, [success(lease.items[0])])
    scene.store.time_again(job.id, 1, 0, [f"{job.id}.0"])
    assert scene.claims_nothing(scene.worker("plain"))
    assert len(scene.claim(scene.worker("board", labels='{"board": "rpi4"}')).items) == 1


def test_open_work_says_what_kinds_of_workers_would_find_some(scene):
    job_of(scene, pool="lab-b", labels='{"board": "rpi4"}')
    job_of(scene, hardware="h2")
    job_of(scene, hardware="h2")
    job_of(scene, origin="local")
    kinds = scene.store.open_work()
    assert sorted((each.hardware, each.pool, sorted(each.labels)) for each in kinds) == [
        ("h", "lab-b", ["board=rpi4"]),
        ("h2", None, []),
    ]


def test_there_is_no_open_work_once_all_is_leased(scene, success):
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    assert scene.store.open_work() == []
    scene.store.settle(lease.id, [success(item) for item in lease.items])
    scene.store.time_again(job.id, 1, 0, [f"{job.id}.0"])
    assert [each.hardware for each in scene.store.open_work()] == ["h"]
