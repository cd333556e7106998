"""What the jobs of a page have come to is read together."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine, event

from tilewright.db.records import Known


def measured(scene, success, worker, seconds):
    """A job with these times, while the device slows down."""
    job = scene.searched(len(seconds))
    for place, each in enumerate(seconds):
        lease = scene.claim(worker, 1)
        assert (lease.items[0].job, lease.items[0].number) == (job.id, place)
        scene.store.settle(lease.id, [success(lease.items[0], each, baseline=(1.0 + place, 1.0 + place))])
    return job


def mixed(scene, success, tag):
    """Five jobs: one that won a key, one that won only its final rounds, one whose results are doubted and
    whose worker drifted, one that waits for a worker, one that nobody searched."""
    rig, bad = scene.worker(f"rig {tag}"), scene.worker(f"bad {tag}")
    won, beaten = (measured(scene, success, rig, (first, first + 1.0)) for first in (1.0, 2.0))
    for job, seconds in ((won, 1.0), (beaten, 2.0)):
        scene.store.add_event(job.id, "report", '{"of": 1}')
        scene.store.add_event(job.id, "report", f'{{"seconds": {seconds}}}')
        if job is beaten:
            scene.store.crown(job.id, 1, 1, [seconds + 4.0])
        scene.store.finish_job(job.id, None, "completed", "")
    doubted = measured(scene, success, bad, (0.1, 0.2))
    scene.store.quarantine_worker(bad.id, "the server", "its golden kernel is slow", 0.0)
    waits = scene.searched(1, hardware="h2")
    scene.store.put_warm_start(waits.id, 1, "{}", known=7, best=f"{won.id}.0")
    return [won, beaten, doubted, waits, scene.job()]


@pytest.fixture
def statements():
    """The statements of all stores from now on."""
    said = []

    def listen(conn, cursor, statement, *_):
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    yield said
    event.remove(Engine, "before_cursor_execute", listen)


def test_a_job_is_summarised_alike_alone_and_on_a_page(scene, success):
    page = [job.id for tag in "ab" for job in mixed(scene, success, tag)]
    together = scene.store.job_summaries(page, 1e-6)
    alone = {job: scene.store.job_summaries([job], 1e-6)[job] for job in page}
    assert {job: replace(each, at=0.0) for job, each in together.items()} == {
        job: replace(each, at=0.0) for job, each in alone.items()
    }


def test_a_summary_tells_all_that_its_jobs_have_come_to(scene, success):
    won, beaten, doubted, waits, new = mixed(scene, success, "a")
    found = scene.store.job_summaries([job.id for job in (won, beaten, doubted, waits, new)], 1e-6)
    best = [None if found[job.id].best is None else found[job.id].best.id for job in (won, beaten, doubted)]
    assert best == [f"{won.id}.0", f"{beaten.id}.1", None]
    assert [found[job.id].report for job in (won, beaten, new)] == [
        '{"seconds": 1.0}',
        '{"seconds": 2.0}',
        None,
    ]
    assert [found[job.id].counts["ok"] for job in (won, doubted, waits)] == [2, 2, 0]
    assert [found[job.id].counts["settled"] for job in (won, waits)] == [2, 0]
    (baseline,), (doubt,) = found[doubted.id].baselines, found[doubted.id].doubts
    assert (baseline.name, baseline.drifted, doubt.worker, doubt.results) == ("bad a", True, "bad a", 2)
    assert (found[waits.id].known, found[waits.id].known_best) == (
        Known(7, f"{won.id}.0"),
        scene.store.trial(f"{won.id}.0"),
    )
    assert (found[waits.id].stall.number, found[new.id].stall, found[won.id].stall) == (0, None, None)
    first = scene.store.trials(won.id)[0].started_at
    assert (found[won.id].first_started_at, found[new.id].first_started_at) == (first, None)


def test_a_page_of_jobs_takes_as_many_statements_whatever_its_length(scene, success, statements):
    def taken(count):
        statements.clear()
        page = scene.store.jobs(limit=count).items
        scene.store.workloads({job.workload for job in page})
        scene.store.targets({job.target for job in page})
        scene.store.job_summaries([job.id for job in page], 1e-6)
        return len(page), list(statements)

    for tag in "abcdef":
        mixed(scene, success, tag)
    few, many = taken(5), taken(30)
    assert (few[0], many[0]) == (5, 30)
    assert (len(many[1]), len(few[1]) >= 8) == (len(few[1]), True)


def test_jobs_that_do_not_exist_have_no_summary(scene):
    job = scene.job()
    assert list(scene.store.job_summaries(["job_0", job.id], 60.0)) == [job.id]
    assert scene.store.job_summaries([], 60.0) == {}


def test_workloads_and_targets_are_read_together(scene):
    scene.store.put_workload("a", "gemm", "{}", "")
    assert [each.name for each in scene.store.workloads(["w", "none", "a"])] == ["gemm", "matmul"]
    assert scene.store.targets(["none", "t"]) == [scene.store.target("t")]
