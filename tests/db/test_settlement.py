import hashlib
import time
from dataclasses import replace

import pytest
from sqlalchemy import select

from tilewright.db import InvalidValue, LeaseLost, NotFound, SettlementMismatch, Superseded
from tilewright.db.fleet_records import LeaseState
from tilewright.db.records import Settlement
from tilewright.db.sql.digest import digest_of
from tilewright.db.sql.tables import leases


def test_a_result_is_stored_with_all_its_evidence(scene, success):
    job = scene.searched(1)
    pending = scene.store.trials(job.id)[0]
    rig = scene.worker()
    lease = scene.claim(rig)
    item = lease.items[0]
    scene.store.start(lease.id, item.trial, item.attempt)
    result = success(item, 0.5, samples=(0.5, 0.25, 0.75), build_seconds=0.01, wall_seconds=0.2)
    assert scene.store.settle(lease.id, [result]) == LeaseState(cancelled=(), drain=False, ttl=30.0)
    settled = scene.store.trials(job.id)[0]
    assert settled == replace(
        pending,
        outcome="ok",
        attempt=1,
        seconds=0.5,
        samples=(0.5, 0.25, 0.75),
        error=0.25,
        build_seconds=0.01,
        wall_seconds=0.2,
        codegen_version="g1",
        worker=rig.id,
        started_at=settled.started_at,
        settled_at=settled.settled_at,
    )


def test_a_failure_is_stored_with_its_words_and_no_time(scene, failure):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [failure(lease.items[0], "run_timeout")])
    trial = scene.store.trials(job.id)[0]
    assert (trial.outcome, trial.failure_kind, trial.seconds) == ("run_timeout", "run_timeout", None)
    assert (trial.failure_message, trial.failure_detail) == ("said why", '{"limit": 10}')


def test_a_censored_success_keeps_its_lower_bound(scene, success):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0], 3.0, censored=True)])
    trial = scene.store.trials(job.id)[0]
    assert (trial.outcome, trial.censored, trial.seconds) == ("censored", True, 3.0)


def test_a_disturbed_success_says_so(scene, success):
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0], disturbed=True), success(lease.items[1])])
    assert [trial.disturbed for trial in scene.store.trials(job.id)] == [True, False]


def test_what_an_older_version_has_settled_is_the_same_settlement_still():
    """The digest of one that was settled before there was a word for disturbed ones, computed by hand."""
    settlement = Settlement("job_1.0", 1, 0.5, (0.5, 0.5), error=0.25, wall_seconds=0.1)
    text = (
        '{"attempt": 1, "build_seconds": 0.0, "censored": false, "codegen_version": null, "error": 0.25, '
        '"failure_detail": "{}", "failure_kind": null, "failure_message": "", "samples": [0.5, 0.5], '
        '"seconds": 0.5, "trial": "job_1.0", "wall_seconds": 0.1}'
    )
    assert digest_of(settlement) == hashlib.sha256(text.encode()).hexdigest()
    assert digest_of(replace(settlement, disturbed=True)) != digest_of(settlement)


def test_the_same_settlement_again_has_no_effect(scene, success):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    result = success(lease.items[0])
    first = scene.store.settle(lease.id, [result])
    before = scene.store.trials(job.id), scene.store.job(job.id)
    assert scene.store.settle(lease.id, [result]) == replace(first, ttl=0.0)
    assert (scene.store.trials(job.id), scene.store.job(job.id)) == before


def test_another_settlement_of_the_same_attempt_is_refused_and_changes_nothing(scene, success):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0], 0.5)])
    with pytest.raises(SettlementMismatch) as caught:
        scene.store.settle(lease.id, [success(lease.items[0], 0.25)])
    assert str(caught.value) == f"attempt 1 of trial {job.id}.0 was already settled with another result"
    assert scene.store.trials(job.id)[0].seconds == 0.5


def test_a_partial_settlement_renews_the_lease(scene, success):
    scene.searched(2)
    lease = scene.claim(scene.worker(), ttl=30.0)
    time.sleep(0.2)
    ends = scene.store.now() + 30.0
    scene.store.settle(lease.id, [success(lease.items[0])])
    with scene.store._database.read() as conn:
        expires = conn.execute(select(leases.c.expires_at).where(leases.c.id == lease.id)).scalar_one()
    assert ends <= expires <= scene.store.now() + 30.0


def test_a_late_result_that_nobody_else_was_given_is_accepted(scene, success):
    job = scene.searched(2)
    lease = scene.lose(scene.worker())
    scene.store.sweep()
    state = scene.store.settle(lease.id, [success(lease.items[0])])
    assert state == LeaseState(cancelled=(f"{job.id}.1",), drain=False, ttl=0.0)
    assert scene.outcomes(job) == ["ok", "pending"]
    assert [item.number for item in scene.claim(scene.worker("other")).items] == [1]


def test_a_late_result_before_the_sweep_is_accepted(scene, success):
    job = scene.searched(1)
    lease = scene.lose(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0])])
    assert (scene.outcomes(job), scene.store.sweep()) == (["ok"], [])


def test_a_result_whose_trial_was_granted_again_is_fenced_off(scene, success):
    job = scene.searched(1)
    old = scene.lose(scene.worker("old"))
    new = scene.claim(scene.worker("new"))
    with pytest.raises(LeaseLost) as caught:
        scene.store.settle(old.id, [success(old.items[0], 0.25)])
    assert str(caught.value) == f"trial {job.id}.0 was granted again after attempt 1"
    scene.store.settle(new.id, [success(new.items[0], 0.5)])
    assert scene.store.trials(job.id)[0].seconds == 0.5


def test_what_can_be_accepted_is_stored_before_the_rest_is_refused(scene, success):
    job = scene.searched(2)
    old = scene.lose(scene.worker("old"))
    scene.claim(scene.worker("new"), max_items=1)
    with pytest.raises(LeaseLost):
        scene.store.settle(old.id, [success(item) for item in old.items])
    assert scene.outcomes(job) == ["pending", "ok"]


def test_a_superseded_session_settles_nothing(scene, success):
    job = scene.searched(1)
    old = scene.claim(scene.worker(session="s1"))
    worker = scene.worker(session="s2")
    with pytest.raises(Superseded, match=rf"a newer session of worker rig \({worker.id}\) has registered"):
        scene.store.settle(old.id, [success(old.items[0])])
    assert scene.outcomes(job) == ["pending"]


def test_a_result_of_a_job_that_was_cancelled_meanwhile_is_kept(scene, success):
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.cancel_job(job.id)
    state = scene.store.settle(lease.id, [success(lease.items[0])])
    assert state.cancelled == (f"{job.id}.1",)
    assert (scene.outcomes(job), scene.store.job(job.id).done) == (["ok", "cancelled"], 1)


def test_a_cancelled_trial_may_be_settled_as_cancelled(scene, failure):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.cancel_job(job.id)
    scene.store.settle(lease.id, [failure(lease.items[0], "cancelled")])
    assert (scene.outcomes(job), scene.store.job(job.id).done) == (["cancelled"], 0)


def test_a_settlement_for_no_lease_is_not_found(store):
    with pytest.raises(NotFound):
        store.settle("lease_0", [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": float("inf")}, "seconds: must be finite, not inf"),
        ({"seconds": float("nan")}, "seconds: must be finite, not nan"),
        ({"seconds": -1.0}, "seconds: must be above 0, not -1.0"),
        ({"seconds": 0.0}, "seconds: must be above 0, not 0.0"),
        ({"seconds": "fast"}, "seconds: must be a number, not str"),
        ({"seconds": None}, "seconds: is missing, and there is no failure_kind either"),
        ({"samples": (0.5, float("nan"))}, "samples[1]: must be finite, not nan"),
        ({"samples": (0.0,)}, "samples[0]: must be above 0, not 0.0"),
        ({"samples": (0.5,) * 5000}, "samples: must be a tuple of at most 4096 numbers"),
        ({"error": float("nan")}, "error: must be finite, not nan"),
        ({"error": 1.5}, "error: is 1.5 tolerances: that is a wrong_output, whose time does not count"),
        ({"failure_kind": "run_error"}, "seconds: is given, but so is the failure run_error"),
        (
            {"failure_kind": "run_error", "seconds": None, "censored": True},
            "censored: is true, but so is the",
        ),
        (
            {"failure_kind": "run_error", "seconds": None, "disturbed": True},
            "disturbed: is true, but so is the",
        ),
        (
            {"failure_kind": "bad_luck", "seconds": None},
            "failure_kind: is 'bad_luck', which is none of build_error",
        ),
        (
            {"failure_detail": '{"limit": Infinity}'},
            "failure_detail: is not JSON: Infinity is not a JSON number",
        ),
        ({"failure_message": "x" * 65_537}, "failure_message: has 65537 characters; at most 65536 are kept"),
        ({"wall_seconds": float("nan")}, "wall_seconds: must be finite, not nan"),
        ({"attempt": 0}, "attempt: must be at least 1, not 0"),
    ],
)
def test_an_impossible_result_is_refused_by_name_and_nothing_is_stored(scene, success, change, message):
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    good, bad = success(lease.items[0]), replace(success(lease.items[1]), **change)
    with pytest.raises(InvalidValue) as caught:
        scene.store.settle(lease.id, [good, bad])
    assert str(caught.value).startswith(f"settlements[1].{message}")
    assert scene.outcomes(job) == ["pending", "pending"]


def test_an_absurd_but_finite_time_is_kept(scene, success):
    job = scene.searched(1)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(lease.items[0], 1e308)])
    assert scene.store.trials(job.id)[0].seconds == 1e308


def test_more_settlements_than_a_lease_can_hold_are_refused(scene):
    scene.searched(1)
    lease = scene.claim(scene.worker())
    with pytest.raises(InvalidValue, match="settlements: are 65; a lease has at most 64"):
        scene.store.settle(lease.id, [Settlement()] * 65)
