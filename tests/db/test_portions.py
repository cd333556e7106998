"""How many trials one lease takes: no worker stands idle beside a batch that another one holds."""

import pytest

OPS = "token ops"


def given(scene, workers, most=16):
    """The sizes of the leases that these workers are given, one after the other."""
    leases = [scene.store.claim(each.id, each.session, each.hardware, most, 30.0) for each in workers]
    return [0 if lease is None else len(lease.items) for lease in leases]


def rigs(scene, count, **more):
    return [scene.worker(f"rig{n}", **more) for n in range(count)]


def test_a_worker_alone_takes_what_it_asks_for(scene):
    scene.searched(8)
    assert given(scene, rigs(scene, 1)) == [8]


@pytest.mark.parametrize(
    ("workers", "queued", "sizes"),
    [
        (2, 8, [4, 4]),
        (4, 8, [2, 2, 2, 2]),
        (3, 8, [3, 3, 2]),
        (8, 8, [1] * 8),
        (3, 2, [1, 1, 0]),
        (2, 100, [16, 16]),
    ],
)
def test_several_share_what_waits(scene, workers, queued, sizes):
    scene.searched(queued)
    assert given(scene, rigs(scene, workers)) == sizes


def test_what_waits_is_of_all_jobs(scene):
    for job in range(4):
        scene.searched(4, tag=f"j{job}-")
    assert given(scene, rigs(scene, 2)) == [4, 4]


def test_who_is_not_there_has_no_part(scene):
    scene.searched(8)
    scene.store.put_hardware("h2", "{}")
    here, left, paused, other = *rigs(scene, 3), scene.worker("other", hardware="h2")
    scene.store.leave(left.id, left.session)
    scene.store.pause_worker(paused.id, OPS, "a fan")
    assert other.hardware != here.hardware
    assert given(scene, [here]) == [8]


def test_what_is_measured_already_counts_so_that_later_leases_are_no_smaller(scene):
    scene.searched(12)
    first, second, third = rigs(scene, 3)
    assert (given(scene, [first]), given(scene, [second, third])) == ([4], [4, 4])


def test_work_that_a_worker_may_not_do_is_no_part_of_its_own(scene):
    scene.searched(2, tag="any-")
    scene.searched(30, tag="pool-", pool="lab")
    outside, inside = scene.worker("outside"), scene.worker("inside", pool="lab")
    assert given(scene, [outside, inside]) == [1, 16]


def test_workers_of_other_pools_have_no_part_of_a_pools_job(scene):
    scene.searched(8, pool="lab")
    for n in range(5):
        scene.worker(f"other{n}", pool="field")
    assert given(scene, [scene.worker("inside", pool="lab")]) == [8]
