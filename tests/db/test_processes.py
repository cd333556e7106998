"""Several real processes on one database file, some of them killed."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.db import open_store
from tilewright.db.sql.schema import SCHEMA

pytestmark = pytest.mark.slow

CHILDREN = Path(__file__).parent / "children.py"


@pytest.fixture
def spawn():
    """Start a child of children.py with pipes; whatever still runs is killed at the end."""
    with contextlib.ExitStack() as stack:

        def start(name, *arguments):
            command = [sys.executable, str(CHILDREN), name, *map(str, arguments)]
            child = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(child.kill)
            return child

        yield start


def release(children):
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()


def lines_of(children):
    return [line for child in children for line in child.communicate()[0].splitlines()]


@pytest.fixture
def missing(kind, request, tmp_path):
    """Urls of databases without tables, by a number: `{}` in the text."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/{{}}.db"
        return
    server = request.getfixturevalue("postgres")
    for n in range(20):
        server.run(f"CREATE DATABASE first_{n} TEMPLATE template0")
    yield server.url("first_{}")
    for n in range(20):
        server.drop(f"first_{n}")


def start_together(spawn, missing, processes, rounds):
    children = [spawn("first_start", missing) for _ in range(processes)]
    answers = []
    for number in range(rounds):
        for child in children:
            child.stdin.write(f"{number}\n")
            child.stdin.flush()
        answers += [child.stdout.readline().strip() for child in children]
    return answers


def test_eight_processes_that_start_together_all_find_the_schema(spawn, missing):
    assert start_together(spawn, missing, processes=8, rounds=2) == [SCHEMA.head] * 16


def test_eight_processes_never_fail_to_start_together(spawn, missing):
    assert start_together(spawn, missing, processes=8, rounds=20) == [SCHEMA.head] * 160


def test_events_of_several_processes_are_numbered_without_gaps(spawn, scene):
    job = scene.job()
    children = [spawn("add_events", scene.url, job.id, 25) for _ in range(4)]
    release(children)
    assert sorted(map(int, lines_of(children))) == list(range(2, 102))


def test_each_trial_is_measured_by_one_of_several_workers(spawn, scene):
    job = scene.searched(60)
    children = [spawn("measure", scene.url, f"rig{n}") for n in range(3)]
    release(children)
    assert sorted(lines_of(children)) == sorted(f"{job.id}.{n} 1" for n in range(60))
    assert (scene.store.job(job.id).done, scene.best().trial) == (60, f"{job.id}.0")


def test_many_writers_and_a_reader_never_see_a_locked_database(spawn, scene):
    """32 processes that start together, renew and settle, while another one reads all that a page shows."""
    job = scene.searched(320)
    reader = spawn("read_all", scene.url, job.id, 320)
    children = [spawn("measure", scene.url, f"rig{n}") for n in range(32)]
    release([reader, *children])
    assert sorted(lines_of(children)) == sorted(f"{job.id}.{n} 1" for n in range(320))
    (reads,) = map(int, lines_of([reader]))
    assert ([child.returncode for child in (reader, *children)], reads > 10) == ([0] * 33, True)


def test_each_of_16_processes_adds_50_trials_and_each_trial_is_measured_by_one(spawn, scene):
    children = [spawn("search_and_measure", scene.url, f"rig{n}", 50, 16 * 50) for n in range(16)]
    release(children)
    lines = lines_of(children)
    jobs = scene.store.jobs().items
    assert [job.done for job in jobs] == [50] * 16
    assert sorted(lines) == sorted(f"{job.id}.{n} 1" for job in jobs for n in range(50))
    assert [child.returncode for child in children] == [0] * 16


def test_16_processes_that_add_the_same_trials_get_the_same_ones(spawn, scene):
    job = scene.job()
    scene.store.begin_search(job.id)
    children = [spawn("add_same", scene.url, job.id, 50) for _ in range(16)]
    release(children)
    assert lines_of(children) == [f"{job.id}.{n}" for n in range(50)] * 16
    assert [trial.number for trial in scene.store.trials(job.id)] == list(range(50))


def kill_while_tuning(spawn, url, job, acknowledged):
    """Let a process tune until it has acknowledged so many trials more, kill it, and return them."""
    child = spawn("tune", url, job.id)
    numbers = [int(child.stdout.readline()) for _ in range(acknowledged)]
    child.send_signal(signal.SIGKILL)
    return numbers + [
        int(line) for line in child.communicate()[0].splitlines(keepends=True) if line.endswith("\n")
    ]


def test_a_killed_writer_loses_nothing_it_has_acknowledged(spawn, scene):
    job = scene.job(origin="local")
    acknowledged = kill_while_tuning(spawn, scene.url, job, 15)
    settled = [trial.number for trial in scene.store.trials(job.id) if trial.outcome == "ok"]
    assert (settled[: len(acknowledged)], len(settled) - len(acknowledged) <= 1) == (acknowledged, True)
    assert scene.store.job(job.id).done == len(settled)
    assert scene.best().seconds == 2.0 / len(settled)


def test_a_database_survives_one_kill_after_another(spawn, scene):
    job = scene.job(origin="local")
    for killed in range(8):
        kill_while_tuning(spawn, scene.url, job, 1 + 3 * killed)
        counts = scene.store.trial_counts(job.id)
        assert counts["ok"] == scene.store.job(job.id).done == counts["settled"]
    if not scene.url.startswith("sqlite"):
        return
    with contextlib.closing(sqlite3.connect(scene.url.removeprefix("sqlite:///"))) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_process_killed_during_the_first_start_leaves_a_database_that_starts(spawn, tmp_path):
    for number in range(5):
        child = spawn("first_start", f"sqlite:///{tmp_path}/{{}}.db")
        child.stdin.write(f"{number}\n")
        child.stdin.flush()
        while not (tmp_path / f"{number}.db").exists():
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        with open_store(f"sqlite:///{tmp_path}/{number}.db") as store:
            assert store.schema_version() == SCHEMA.head
