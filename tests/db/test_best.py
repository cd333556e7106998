from dataclasses import replace

import pytest
from sqlalchemy import text

from tilewright.db import InvalidValue, NotFound
from tilewright.db.best_records import (
    Baseline,
    BestSchedule,
    Challenger,
    Confirmation,
    Duel,
    SearchState,
)
from tilewright.db.records import Settlement


def measured(scene, *results, hardware="h", tag="c", worker="rig"):
    """A job whose trials are settled by `results`, each a function of the leased item."""
    job = scene.searched(len(results), hardware=hardware, tag=tag)
    lease = scene.claim(scene.worker(f"{worker}-{hardware}", hardware=hardware), max_items=64)
    settled = [result(item) for result, item in zip(results, lease.items, strict=True)]
    scene.store.settle(lease.id, settled)
    return job


def damage(scene, statement):
    """What another program did to the database."""
    with scene.store._database.write() as conn:
        conn.execute(text(statement))


def taking(seconds, success, **more):
    return lambda item: success(item, seconds, **more)


def test_nothing_is_best_before_something_is_measured(scene):
    assert scene.best() is None


def test_the_best_comes_with_its_evidence(scene, success):
    job = measured(scene, taking(0.5, success, samples=(0.5, 0.75)))
    best = scene.best()
    assert best == BestSchedule(
        workload="w",
        target="t",
        hardware="h",
        trace='{"candidate": "c0"}',
        seconds=0.5,
        samples=(0.5, 0.75),
        error=0.25,
        trial=f"{job.id}.0",
        job=job.id,
        worker=scene.store.workers()[0].id,
        measured_at=scene.store.trials(job.id)[0].settled_at,
        codegen_version="g1",
        search=SearchState(done=1, asked=64, state="running"),
        kind="exact",
        reason=f"measured for this workload, target and hardware by trial {job.id}.0",
        versions='{"tilewright": "0.1.0"}',
    )
    assert (best.dispersion, best.speedup, best.confirmed) == (0.25 / 0.625, None, False)


def test_the_fastest_of_a_job_is_best_at_once(scene, success):
    job = measured(scene, taking(0.75, success), taking(0.25, success), taking(0.5, success))
    assert scene.best().trial == f"{job.id}.1"


def test_the_best_of_another_job_stands_until_both_were_timed_again(scene, success):
    first = measured(scene, taking(0.5, success), tag="a")
    fast = measured(scene, taking(0.75, success), taking(0.25, success), tag="b")
    best = scene.best()
    assert (best.trial, best.seconds) == (f"{first.id}.0", 0.5)
    assert best.challenger == Challenger(f"{fast.id}.1", 0.25)
    slow = measured(scene, taking(0.4, success), tag="c")
    assert scene.best() == best and slow.id != fast.id


@pytest.mark.parametrize(
    ("incumbent", "challenger", "wins"), [(0.4, 0.3, True), (0.3, 0.4, False), (0.3, 0.3, False)]
)
def test_times_taken_in_turn_decide(scene, success, incumbent, challenger, wins):
    first, second = (
        measured(scene, taking(0.5, success), tag="a"),
        measured(scene, taking(0.25, success), tag="b"),
    )
    old, new = f"{first.id}.0", f"{second.id}.0"
    rig = scene.store.workers()[0].id
    times = {new: (challenger,) * 3, old: (incumbent,) * 3}
    best = scene.store.decide(second.id, 1, times, rig)
    assert (best.trial, best.seconds, best.challenger) == (
        new if wins else old,
        min(challenger, incumbent),
        None,
    )
    (duel,) = scene.store.duels("w", "t", "h")
    assert duel == Duel(second.id, old, new if wins else old, times, rig, duel.at)
    assert scene.best() == best


def test_a_duel_without_the_one_that_stands_decides_nothing(scene, success):
    jobs = [measured(scene, taking(0.5, success), tag=tag) for tag in "abc"]
    before = scene.best()
    times = {f"{jobs[1].id}.0": (0.1,), f"{jobs[2].id}.0": (0.2,)}
    assert scene.store.decide(jobs[2].id, 1, times) == before
    assert scene.store.duels("w", "t", "h") == []


def test_only_trials_of_the_jobs_own_key_are_decided_between(scene, success):
    here = measured(scene, taking(0.5, success), tag="a")
    there = measured(scene, taking(0.25, success), hardware="h2", tag="b")
    with pytest.raises(InvalidValue) as caught:
        scene.store.decide(here.id, 1, {f"{here.id}.0": (0.1,), f"{there.id}.0": (0.1,)})
    assert str(caught.value) == f"times: trial {there.id}.0 is none that could be best for job {here.id}"


def test_a_second_worker_confirms_what_stands_and_nothing_else(scene, success):
    job = measured(scene, taking(0.5, success), taking(0.75, success))
    other = scene.worker("other")
    assert scene.store.confirm(job.id, 1, f"{job.id}.1", other.id, 0.7).confirmation is None
    best = scene.store.confirm(job.id, 1, f"{job.id}.0", other.id, 0.6)
    assert best.confirmation == Confirmation(other.id, 0.6, best.confirmation.at) and best.confirmed
    scene.store.crown(job.id, 1, 0, (0.45,))
    assert scene.best().confirmed
    scene.store.crown(job.id, 1, 1, (0.4,))
    assert not scene.best().confirmed


def defaults(scene, *settlements):
    """A job whose trials are those of default schedules, and then one that takes 0.5 s."""
    job = scene.searched(0)
    new = [replace(scene.candidate(n), origin="default") for n in range(len(settlements))]
    scene.store.add_trials(job.id, 1, [*new, scene.candidate(len(settlements))])
    lease = scene.claim(scene.worker(), max_items=64)
    settled = [settlement(item) for settlement, item in zip(settlements, lease.items, strict=False)]
    scene.store.settle(lease.id, [*settled, settle_ok(lease.items[-1])])
    return job


def settle_ok(item):
    return Settlement(item.trial, item.attempt, 0.5, (0.5, 0.5), error=0.25)


def timed_out(item):
    detail = '{"limit": 2.0, "elapsed": 2.1}'
    return Settlement(item.trial, item.attempt, failure_kind="run_timeout", failure_detail=detail)


def test_the_best_is_so_much_faster_than_the_default_schedule(scene, success):
    job = defaults(scene, taking(1.5, success), taking(1.0, success))
    assert scene.best().baseline == Baseline(f"{job.id}.0", 1.5)
    assert scene.best().speedup == 3.0


@pytest.mark.parametrize(
    "slow", [timed_out, lambda item: Settlement(item.trial, item.attempt, 2.0, censored=True)]
)
def test_a_default_schedule_that_took_too_long_bounds_the_speedup(scene, slow):
    job = defaults(scene, slow)
    assert (scene.best().baseline, scene.best().speedup) == (Baseline(f"{job.id}.0", 2.0, bound=True), 4.0)


def test_a_default_schedule_without_code_leaves_its_place_to_the_next(scene, success, failure):
    job = defaults(scene, lambda item: failure(item, "build_error"), taking(1.0, success))
    assert scene.best().baseline == Baseline(f"{job.id}.1", 1.0)


def test_the_default_schedule_itself_is_as_fast_as_the_default_schedule(scene, success):
    job = defaults(scene, taking(0.25, success))
    scene.store.crown(job.id, 1, 0, (0.3,))
    assert scene.best().speedup == 1.0


def test_damaged_samples_are_none_and_the_rest_is_served(scene, success):
    job = measured(scene, taking(0.5, success))
    damage(scene, "UPDATE trials SET samples = '[0.5, \"x'")
    best = scene.best()
    assert (best.trial, best.seconds, best.samples) == (f"{job.id}.0", 0.5, ())
    assert best.reason.endswith("; its samples are damaged")


def test_an_equal_time_does_not_replace_the_best(scene, success):
    first = measured(scene, taking(0.5, success), tag="a")
    measured(scene, taking(0.5, success), tag="b")
    assert scene.best().job == first.id


def test_each_hardware_has_its_own_best(scene, success):
    measured(scene, taking(0.25, success), hardware="h")
    slow = measured(scene, taking(0.5, success), hardware="h2")
    assert (scene.best("h2").job, scene.best("h2").seconds) == (slow.id, 0.5)


def test_another_target_or_workload_finds_nothing(scene, success):
    measured(scene, taking(0.25, success))
    assert scene.store.best("w", "other", "h") is None
    assert scene.store.best("other", "t", "h") is None


def test_hardware_that_was_never_measured_finds_nothing(scene, success):
    measured(scene, taking(0.25, success), hardware="h")
    assert scene.best("h2") is None


@pytest.mark.parametrize("kind", ["wrong_output", "run_error", "run_timeout", "cancelled"])
def test_a_failure_is_never_best(scene, failure, kind):
    measured(scene, lambda item: failure(item, kind))
    assert scene.best() is None


def test_a_censored_result_is_never_best(scene, success):
    measured(scene, taking(0.25, success, censored=True))
    assert scene.best() is None


def test_a_result_whose_output_was_not_checked_is_never_best(scene, success):
    measured(scene, taking(0.25, success, error=None))
    assert scene.best() is None


def test_the_version_that_measured_is_the_one_of_the_settlement_if_it_says_so(scene, success):
    measured(scene, taking(0.25, success, codegen_version="g2"))
    assert scene.best().codegen_version == "g2"


def test_a_local_result_of_an_unknown_version_is_never_best(scene, success):
    job = scene.searched(1, origin="local")
    scene.store.settle_local(job.id, 1, 0, success(scene.store.trials(job.id)[0], attempt=1))
    assert scene.best() is None


def test_the_best_of_a_cancelled_search_says_how_far_it_came(scene, success):
    job = scene.job(trials=4)
    scene.store.begin_search(job.id)
    scene.add(job, range(4))
    lease = scene.claim(scene.worker(), max_items=2)
    scene.store.settle(lease.id, [success(item) for item in lease.items])
    scene.store.cancel_job(job.id)
    assert scene.best().search == SearchState(done=2, asked=4, state="cancelled")


def test_a_retired_schedule_gives_way_to_the_next_best(scene, success):
    first = measured(scene, taking(0.5, success), taking(0.25, success), tag="a")
    second = measured(scene, taking(0.375, success), tag="b")
    assert scene.store.retire(f"{first.id}.1", "does not replay").trial == f"{second.id}.0"
    assert scene.store.retire(f"{second.id}.0", "does not replay").trial == f"{first.id}.0"
    assert scene.store.retire(f"{first.id}.0", "does not replay") is None
    assert scene.best() is None


def test_a_retired_candidate_does_not_come_back_with_a_later_job(scene, success):
    job = measured(scene, taking(0.25, success))
    scene.store.retire(f"{job.id}.0", "does not replay")
    measured(scene, taking(0.125, success))
    assert scene.best() is None


def test_retiring_what_is_not_best_leaves_the_best(scene, success):
    job = measured(scene, taking(0.25, success), taking(0.5, success))
    before = scene.best()
    assert scene.store.retire(f"{job.id}.1", "does not replay") == before


def test_retiring_twice_has_no_effect(scene, success):
    job = measured(scene, taking(0.25, success), taking(0.5, success))
    once = scene.store.retire(f"{job.id}.0", "does not replay")
    assert scene.store.retire(f"{job.id}.0", "once more") == replace(once)


def test_retiring_an_unknown_trial_is_refused(store):
    with pytest.raises(NotFound, match="there is no trial 'x'"):
        store.retire("x", "gone")


def local(scene, success, *seconds):
    """A local job with one settled trial for each time."""
    job = scene.searched(len(seconds), origin="local")
    for n, (trial, taken) in enumerate(zip(scene.store.trials(job.id), seconds, strict=True)):
        scene.store.settle_local(job.id, 1, n, success(trial, taken, codegen_version="1", attempt=1))
    return job


def test_the_winner_of_the_final_rounds_takes_the_place_of_a_luckier_reading(scene, success):
    job = local(scene, success, 0.30, 0.31)
    assert scene.best().trial == f"{job.id}.0"
    crowned = scene.store.crown(job.id, 1, 1, (0.33, 0.32, 0.34))
    assert (crowned.trial, crowned.seconds, crowned.samples) == (f"{job.id}.1", 0.33, (0.33, 0.32, 0.34))
    assert scene.best() == crowned


def test_a_crowned_trial_remembers_what_the_search_was_told(scene, success):
    job = local(scene, success, 0.30)
    for samples in ((0.33,), (0.35,)):
        scene.store.crown(job.id, 1, 0, samples)
    trial = scene.store.trials(job.id)[0]
    assert (trial.seconds, trial.samples) == (0.35, (0.35,))
    assert (trial.first_seconds, trial.first_samples) == (0.30, (0.30, 0.30))


def test_a_crowned_trial_does_not_take_the_place_of_a_faster_one_of_another_job(scene, success):
    other = local(scene, success, 0.20)
    job = local(scene, success, 0.30)
    scene.store.crown(job.id, 1, 0, (0.25,))
    assert scene.best().trial == f"{other.id}.0"


def test_crowning_a_trial_that_was_retired_meanwhile_changes_nothing(scene, success):
    job = local(scene, success, 0.30)
    scene.store.retire(f"{job.id}.0", "wrong on a second device")
    assert scene.store.crown(job.id, 1, 0, (0.25,)) is None
    assert (scene.best(), scene.store.trials(job.id)[0].seconds) == (None, 0.30)


def test_a_trial_without_a_time_is_not_crowned(scene, success):
    job = scene.searched(1, origin="local")
    with pytest.raises(InvalidValue) as caught:
        scene.store.crown(job.id, 1, 0, (0.25,))
    assert str(caught.value) == f"number: trial 0 of {job.id} has no time that could be best"
