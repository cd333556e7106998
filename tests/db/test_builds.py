"""Artifacts for devices without a compiler: who makes them, and which trials wait for them."""

import hashlib
import json
import time
from dataclasses import replace

import pytest

from tilewright.db import InvalidValue, LeaseLost, NotFound, StoreFull
from tilewright.db.build_records import BuildCounts, BuildItem, BuildResult
from tilewright.db.build_store import MAX_LOST_BUILDERS
from tilewright.db.fleet_records import NewWorker, Worker

from .conftest import MOMENT, Scene, ok

PLENTY = 1 << 30


def device(scene: Scene, name: str = "board") -> Worker:
    """A worker that only runs, on hardware h."""
    return scene.store.register_worker(NewWorker(name, "s1", "h", 1, "{}", "{}", "g1", run_only=True))


def put(scene: Scene, data: bytes) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    scene.store.put_artifact(sha256, data, PLENTY)
    return sha256


def build(scene: Scene, item: BuildItem, builder: str = "b") -> str:
    """Makes it, as a builder does."""
    sha256 = put(scene, f"{item.kind} {item.trace} {item.input_seed}".encode())
    scene.store.settle_build(builder, item.build, item.attempt, BuildResult(sha256, build_seconds=0.5))
    return sha256


def build_all(scene: Scene) -> None:
    while items := scene.store.claim_builds("b", 16, 30.0):
        for item in items:
            build(scene, item)


FAILED = BuildResult(failure_kind="build_error", failure_message="no code", failure_detail='{"limit": 1}')


def test_a_device_that_only_runs_is_given_no_trial_before_its_artifacts_are_there(scene: Scene) -> None:
    scene.searched(1)
    board = device(scene)
    assert scene.claims_nothing(board) and not scene.store.built_for(["h"])
    data, program = scene.store.claim_builds("b", 16, 30.0)
    made = build(scene, data)
    assert scene.claims_nothing(board) and not scene.store.built_for(["h"])
    code = build(scene, program)
    assert scene.store.built_for(["h", "h2"]) == {"h"}
    (item,) = scene.claim(board).items
    said = (item.program_sha256, item.program_bytes, item.data_sha256, item.data_bytes)
    assert said == (code, len(scene.store.artifact(code)), made, len(scene.store.artifact(made)))


def test_a_builder_is_told_what_to_make_data_first(scene: Scene) -> None:
    scene.searched(2)
    device(scene)
    items = scene.store.claim_builds("b", 16, 30.0)
    assert [replace(item, build="") for item in items] == [
        BuildItem("", 1, "data", '{"program": 1}', "", "", 7),
        BuildItem("", 1, "program", '{"program": 1}', '{"kind": "llvm"}', '{"candidate": "c0"}', 7),
        BuildItem("", 1, "program", '{"program": 1}', '{"kind": "llvm"}', '{"candidate": "c1"}', 7),
    ]


def test_nothing_is_built_for_workers_that_compile(scene: Scene) -> None:
    scene.searched(1)
    worker = scene.worker()
    assert scene.store.claim_builds("b", 16, 30.0) == []
    (item,) = scene.claim(worker).items
    assert item.program_sha256 is None


def test_no_two_builders_make_the_same(scene: Scene) -> None:
    scene.searched(3)
    device(scene)
    first, second = scene.store.claim_builds("one", 2, 30.0), scene.store.claim_builds("two", 16, 30.0)
    assert (len(first), len(second)) == (2, 2)
    assert len({item.build for item in (*first, *second)}) == 4


def test_jobs_share_what_was_built(scene: Scene) -> None:
    scene.searched(2)
    board = device(scene)
    build_all(scene)
    lease = scene.claim(board)
    scene.store.settle(lease.id, [ok(item) for item in lease.items])
    scene.searched(2)
    assert scene.store.claim_builds("b", 16, 30.0) == []
    assert len(scene.claim(board).items) == 2


def test_a_failed_program_settles_its_trial_and_no_device_sees_it(scene: Scene) -> None:
    job = scene.searched(2)
    board = device(scene)
    data, bad, good = scene.store.claim_builds("b", 16, 30.0)
    build(scene, data)
    scene.store.settle_build("b", bad.build, bad.attempt, FAILED)
    build(scene, good)
    failed, _ = scene.store.trials(job.id)
    assert (failed.outcome, failed.failure_message, failed.worker) == ("build_error", "no code", None)
    assert json.loads(failed.failure_detail) == {"limit": 1}
    assert [item.number for item in scene.claim(board).items] == [1]


def test_failed_data_settles_every_trial_of_the_workload(scene: Scene) -> None:
    job = scene.searched(3)
    device(scene)
    data, *_ = scene.store.claim_builds("b", 16, 30.0)
    scene.store.settle_build("b", data.build, data.attempt, FAILED)
    assert scene.outcomes(job) == ["build_error"] * 3


def test_what_failed_before_fails_in_a_later_job_without_another_build(scene: Scene) -> None:
    scene.searched(1)
    board = device(scene)
    data, program = scene.store.claim_builds("b", 16, 30.0)
    build(scene, data)
    scene.store.settle_build("b", program.build, program.attempt, FAILED)
    later = scene.searched(1)
    assert scene.store.claim_builds("b", 16, 30.0) == []
    assert scene.store.built_for(["h", "h2"]) == {"h"}
    assert scene.claims_nothing(board)
    assert scene.outcomes(later) == ["build_error"]


def test_the_builds_of_a_killed_builder_go_to_another_which_fences_it_off(scene: Scene) -> None:
    scene.searched(1)
    device(scene)
    mine = scene.store.claim_builds("killed", 16, MOMENT)
    time.sleep(2 * MOMENT)
    yours = scene.store.claim_builds("other", 16, 30.0)
    assert [(i.build, i.attempt) for i in yours] == [(i.build, 2) for i in mine]
    sha256 = put(scene, b"late")
    with pytest.raises(LeaseLost, match="was granted again after attempt 1"):
        scene.store.settle_build("killed", mine[0].build, 1, BuildResult(sha256))


def test_a_late_result_that_nobody_else_works_at_counts(scene: Scene) -> None:
    scene.searched(1)
    device(scene)
    (item,) = scene.store.claim_builds("slow", 1, MOMENT)
    time.sleep(2 * MOMENT)
    build(scene, item, "slow")
    assert scene.store.build_counts().done == 1


def test_a_renewed_grant_does_not_expire(scene: Scene) -> None:
    scene.searched(1)
    device(scene)
    (item,) = scene.store.claim_builds("b", 1, 0.5)
    scene.store.renew_builds("b", [(item.build, item.attempt)], 30.0)
    time.sleep(0.6)
    assert [i.kind for i in scene.store.claim_builds("c", 16, 30.0)] == ["program"]


def test_what_is_released_goes_back_at_once_and_counts_for_nothing(scene: Scene) -> None:
    scene.searched(1)
    device(scene)
    for _ in range(MAX_LOST_BUILDERS + 1):
        assert len(scene.store.claim_builds("b", 16, 30.0)) == 2
        assert scene.store.release_builds("b") == 2


def test_what_takes_builder_after_builder_with_it_has_failed(scene: Scene) -> None:
    job = scene.searched(1)
    board = device(scene)
    (data,) = scene.store.claim_builds("b", 1, 30.0)
    build(scene, data)
    for n in range(MAX_LOST_BUILDERS):
        assert len(scene.store.claim_builds(f"b{n}", 16, MOMENT)) == 1
        time.sleep(2 * MOMENT)
    assert scene.store.claim_builds("b", 16, 30.0) == []
    assert scene.claims_nothing(board)
    (trial,) = scene.store.trials(job.id)
    assert (trial.outcome, trial.failure_message) == (
        "build_error", f"{MAX_LOST_BUILDERS} builders were lost while they made it",
    )  # fmt: skip


def test_the_same_settlement_again_has_no_effect_and_another_is_refused(scene: Scene) -> None:
    scene.searched(1)
    device(scene)
    (item,) = scene.store.claim_builds("b", 1, 30.0)
    build(scene, item)
    build(scene, item)
    with pytest.raises(LeaseLost, match="another result"):
        scene.store.settle_build("b", item.build, 1, FAILED)


def test_a_build_has_an_artifact_that_is_there_or_a_failure(scene: Scene) -> None:
    scene.searched(1)
    device(scene)
    (item,) = scene.store.claim_builds("b", 1, 30.0)
    for wrong in (BuildResult(), BuildResult("0" * 64), replace(FAILED, artifact="0" * 64)):
        with pytest.raises(InvalidValue):
            scene.store.settle_build("b", item.build, 1, wrong)
    with pytest.raises(NotFound):
        scene.store.settle_build("b", "build_none", 1, FAILED)


def test_bytes_are_kept_under_their_own_digest_alone(scene: Scene) -> None:
    sha256 = put(scene, b"program")
    assert scene.store.artifact(sha256) == b"program"
    with pytest.raises(InvalidValue, match="is not that of the 5 bytes"):
        scene.store.put_artifact(sha256, b"other", PLENTY)
    for name in ("0" * 64, "../../etc/passwd", ""):
        with pytest.raises(NotFound):
            scene.store.artifact(name)


def test_artifacts_in_use_are_never_forgotten_to_make_room(scene: Scene) -> None:
    put(scene, b"x" * 1000)
    other = b"y" * 1000
    with pytest.raises(StoreFull, match="artifact_store_bytes"):
        scene.store.put_artifact(hashlib.sha256(other).hexdigest(), other, 1500)
    assert scene.store.build_counts() == BuildCounts(0, 0, 0, 1000)


def test_artifacts_used_long_ago_make_room_and_are_built_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.db.sql.builds._IN_USE_SECONDS", -1.0)
    scene.searched(1)
    device(scene)
    (data,) = scene.store.claim_builds("b", 1, 30.0)
    gone = build(scene, data)
    new = b"y" * 1000
    scene.store.put_artifact(hashlib.sha256(new).hexdigest(), new, 1000)
    with pytest.raises(NotFound):
        scene.store.artifact(gone)
    assert [item.kind for item in scene.store.claim_builds("b", 16, 30.0)] == ["data", "program"]
