import pytest

from tilewright.db import open_store

CHANGES = {
    "a job": lambda scene, worker: scene.job(),
    "a token": lambda scene, worker: scene.store.create_token("t", ["worker"]),
    "a retired worker": lambda scene, worker: scene.store.set_worker_state(worker.id, "retired", "broken"),
    "a sweep": lambda scene, worker: scene.store.put_hardware("h3", "{}"),
}


def test_the_mark_of_a_store_that_nobody_changes_stays(scene):
    scene.job()
    assert len({scene.store.mark() for _ in range(5)}) == 1


def test_reading_is_no_change(scene):
    job = scene.job()
    before = scene.store.mark()
    scene.store.job(job.id), scene.store.best("w", "t", "h"), scene.store.workers(), scene.store.now()
    assert scene.store.mark() == before


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_this_store_or_of_another_one_is_seen_at_once(scene, change):
    worker = scene.worker()
    before = scene.store.mark()
    with open_store(scene.url) as other:
        theirs = other.mark()
        CHANGES[change](scene, worker)
        assert scene.store.mark() != before
        assert other.mark() != theirs


def test_a_mark_does_not_come_again(scene):
    seen = []
    for _ in range(5):
        seen.append(scene.store.mark())
        scene.job()
    assert len(set(seen)) == 5


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_the_mark_of_tokens_changes_with_these_alone(scene):
    marks = [scene.store.mark().tokens]
    scene.job()
    marks.append(scene.store.mark().tokens)
    token, _ = scene.store.create_token("t", ["worker"])
    marks.append(scene.store.mark().tokens)
    scene.store.revoke_token(token.id)
    marks.append(scene.store.mark().tokens)
    assert [marks.index(mark) for mark in marks] == [0, 0, 2, 3]
