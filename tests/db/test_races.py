"""Calls that meet: what is stored is what one of the orders in which they could have come would store."""

import threading

import pytest

from tilewright.db import StoreError, check

ROUNDS = 10


def together(*calls):
    """Run calls at the same time, each in a thread of its own; what they raised of the store's errors."""
    start, raised = threading.Barrier(len(calls)), []

    def run(call):
        start.wait()
        try:
            call()
        except StoreError as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def broken(scene):
    """Rules of what must never be in a database that are broken in this one; its keys are made up."""
    return [p for p in check(scene.url) if p.rule.startswith(("a ", "an ", "events", "the"))]


def test_a_result_that_meets_the_sweep_of_its_lease_is_taken_in_and_blames_nobody(scene, success):
    jobs = []
    for number in range(ROUNDS):
        hardware = f"sweep{number}"
        scene.store.put_hardware(hardware, "{}")
        jobs.append(scene.searched(3, hardware=hardware, tag=f"r{number}-"))
        lease = scene.lose(scene.worker(f"rig{number}", hardware=hardware), started=0)
        results = [success(item) for item in lease.items]
        assert together(lambda: scene.store.settle(lease.id, results), scene.store.sweep) == []  # noqa: B023
    assert [scene.outcomes(job) for job in jobs] == [["ok"] * 3] * ROUNDS
    assert [scene.store.job(job.id).done for job in jobs] == [3] * ROUNDS
    assert (scene.store.crashes(), broken(scene)) == ([], [])


def test_a_result_that_meets_a_quarantine_is_never_best_known(scene, success):
    for number in range(ROUNDS):
        job = scene.searched(1, tag=f"q{number}-")
        worker = scene.worker(f"rig{number}")
        (item,) = (lease := scene.claim(worker)).items
        raised = together(
            lambda: scene.store.settle(lease.id, [success(item, 0.1)]),  # noqa: B023
            lambda: scene.store.quarantine_worker(worker.id, "token ops", "odd times"),  # noqa: B023
        )
        assert (raised, scene.outcomes(job), scene.best()) == ([], ["ok"], None)
    assert broken(scene) == []


def test_two_jobs_that_offer_at_once_leave_one_best_and_the_faster_one_as_its_challenger(scene, success):
    for number in range(ROUNDS):
        hardware = f"pair{number}"
        scene.store.put_hardware(hardware, "{}")
        jobs = [scene.searched(1, hardware=hardware, tag=tag) for tag in ("a", "b")]
        leases = [scene.claim(scene.worker(f"{hardware}-{n}", hardware=hardware)) for n in range(2)]
        seconds = dict(zip((item.job for lease in leases for item in lease.items), (0.2, 0.1), strict=True))

        def settle(lease):
            items = lease.items
            scene.store.settle(lease.id, [success(item, seconds[item.job]) for item in items])  # noqa: B023

        assert together(*(lambda each=lease: settle(each) for lease in leases)) == []
        best = scene.best(hardware)
        faster = min(seconds, key=seconds.__getitem__)
        challenger = None if best.challenger is None else best.challenger.trial
        assert {job.id for job in jobs} == set(seconds)
        assert (best.seconds, challenger) == (
            seconds[best.job],
            None if best.job == faster else f"{faster}.0",
        )
    assert broken(scene) == []


def test_a_trial_timed_again_for_another_job_is_settled_beside_that_jobs_end(scene, success):
    """The result belongs to the trial of one job and to the round of another, which ends meanwhile."""
    for number in range(ROUNDS):
        hardware = f"again{number}"
        scene.store.put_hardware(hardware, "{}")
        owner = scene.searched(1, hardware=hardware)
        worker = scene.worker(hardware, hardware=hardware)
        lease = scene.claim(worker)
        scene.store.settle(lease.id, [success(lease.items[0], 0.5)])
        wanting = scene.searched(1, hardware=hardware, tag="w")
        scene.store.time_again(wanting.id, 1, 0, [f"{owner.id}.0"])
        again = scene.claim(worker, 1)
        assert [(item.trial, item.job) for item in again.items] == [(f"{owner.id}.0", wanting.id)]
        raised = together(
            lambda: scene.store.settle(again.id, [success(again.items[0], 0.4)]),  # noqa: B023
            lambda: scene.store.finish_job(wanting.id, None, "completed", ""),  # noqa: B023
            lambda: scene.store.finish_job(owner.id, None, "completed", ""),  # noqa: B023
        )
        assert raised == []
        (round_of,) = scene.store.retimings(wanting.id)
        assert (round_of.outcome, round_of.seconds, round_of.trial) == ("ok", 0.4, f"{owner.id}.0")
        trial = scene.store.trial(f"{owner.id}.0")
        assert (trial.seconds, trial.outcome, scene.store.job(owner.id).done) == (0.5, "ok", 1)
    assert broken(scene) == []


@pytest.mark.parametrize("calls", [2, 4])
def test_a_result_that_is_sent_twice_at_once_is_counted_once(scene, success, calls):
    job = scene.searched(ROUNDS)
    lease = scene.claim(scene.worker(), ROUNDS)
    for item in lease.items:
        result = [success(item)]
        assert together(*[lambda: scene.store.settle(lease.id, result)] * calls) == []  # noqa: B023
    assert (scene.store.job(job.id).done, scene.store.trial_counts(job.id)["ok"]) == (ROUNDS, ROUNDS)
    assert scene.store.workers()[0].settled == ROUNDS
