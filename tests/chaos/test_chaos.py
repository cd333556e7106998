"""A short chaos run of both forms; and that what must hold is looked at: of a doctored end is complained."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
KEY = {"workload": "w", "target": "t", "hardware": "h"}


@pytest.fixture(autouse=True)
def beside_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["scaled", "embedded"])
def test_a_minute_of_faults_loses_nothing_that_was_acknowledged(form: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), "--form", form, "--minutes", "0.6", "--quiet"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def result(trial: str, seconds: float) -> dict[str, Any]:
    """A settlement as a worker sends it."""
    from tilewright.measure.messages import MeasureResult

    said: dict[str, Any] = MeasureResult(trial, 1, seconds, (seconds, 2 * seconds), error=0.5).to_json()
    return said


class End:
    """A database after one job with two trials of which nothing was lost, and what was acknowledged."""

    def __init__(self, path: Path) -> None:
        from ledger import Ledger

        from tilewright.db import open_store
        from tilewright.db.sql.digest import digest_of
        from tilewright.measure.messages import MeasureResult
        from tilewright.service.lease_calls import settlement

        self.url = f"sqlite:///{path}"
        open_store(self.url).close()
        self.sql = sqlite3.connect(path, isolation_level=None)
        self.ledger = Ledger(
            jobs={"key": "j"}, settled={(f"j.{n}", 1): result(f"j.{n}", n + 1.0) for n in (0, 1)}
        )
        self.add("workers", id="x", name="x", state="offline")
        self.add("leases", id="l", worker="x", closed_at=1.0)
        self.add(
            "jobs", id="j", state="completed", reason="all 2 trials are done", seed=7, done=2, trials=2, **KEY
        )
        for n in (0, 1):
            digest = digest_of(settlement(MeasureResult.from_json(self.ledger.settled[f"j.{n}", 1])))
            timed = {"seconds": n + 1.0, "samples": f"[{n + 1.0}, {2 * (n + 1.0)}]", "error": 0.5}
            self.add(
                "trials",
                id=f"j.{n}",
                job="j",
                number=n,
                candidate_key=f"c{n}",
                outcome="ok",
                **timed,
                codegen_version="1",
            )
            self.add(
                "attempts", trial=f"j.{n}", attempt=1, lease="l", worker="x", state="settled", digest=digest
            )
        for seq, state in ((1, "queued"), (2, "completed")):
            self.add("events", job="j", seq=seq, kind="state", data=f'{{"state": "{state}"}}')
        self.add("schedules", trial="j.0", seconds=1.0, **KEY)

    def add(self, table: str, **values: Any) -> None:
        """A row; a column that needs a value and is not named has one of its kind."""
        for _, name, kind, needed, default, _ in self.sql.execute(f"PRAGMA table_info({table})").fetchall():
            counts_up = table == "jobs" and name == "seq"
            if needed and default is None and name not in values and not counts_up:
                values[name] = "" if kind in ("VARCHAR", "TEXT") else b"" if kind == "BLOB" else 0
        marks = ", ".join("?" for _ in values)
        self.sql.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))

    def complaints(self, seeds: tuple[int, ...] = (7,)) -> list[str]:
        from evidence import read_evidence
        from verdict import complaints

        return complaints(read_evidence(self.url), self.ledger, set(seeds))


@pytest.fixture
def end(tmp_path: Path) -> Any:
    made = End(tmp_path / "end.db")
    yield made
    made.sql.close()


def test_of_a_run_that_lost_nothing_nothing_is_complained(end: End) -> None:
    assert end.complaints() == []


def do(statement: str) -> Callable[[End], object]:
    return lambda end: end.sql.execute(statement)


DOCTORED: dict[str, tuple[Callable[[End], object], str]] = {
    "a submission is lost": (
        lambda end: end.ledger.jobs.update(other="k"),
        "job k of key other was acknowledged and is not there",
    ),
    "a submission is doubled": (
        lambda end: (
            end.add("jobs", id="k", seed=7, state="cancelled", **KEY),
            end.add("events", job="k", seq=1, kind="state", data='{"state": "cancelled"}'),
        ),
        "one submission made the jobs j, k",
    ),
    "a settlement is lost": (
        do("UPDATE attempts SET state = 'lost' WHERE trial = 'j.1'"),
        "attempt 1 of trial j.1 was acknowledged as settled and is lost",
    ),
    "a settlement is another": (
        do("UPDATE attempts SET digest = 'd' WHERE trial = 'j.1'"),
        "and is d",
    ),
    "a time is made up": (
        do("UPDATE trials SET seconds = 1.5 WHERE id = 'j.1'"),
        "trial j.1 has 1.5 s, which no worker has reported",
    ),
    "a trial is settled twice": (
        lambda end: (
            end.add("attempts", trial="j.1", attempt=2, lease="l", worker="x", state="settled", digest="d"),
            end.ledger.settled.update({("j.1", 2): result("j.1", 2.0) | {"attempt": 2}}),
        ),
        "trial j.1 was settled 2 times",
    ),
    "a job is stuck": (
        do("UPDATE jobs SET state = 'running', reason = ''"),
        "job j did not end: running, '', 2 of 2 trials",
    ),
    "a job failed without a fault": (
        do("UPDATE jobs SET state = 'failed', reason = 'it is Monday'"),
        "job j failed for a reason that no fault explains: it is Monday",
    ),
    "a cancellation is undone": (
        lambda end: end.ledger.cancelled.add("j"),
        "job j was acknowledged as cancelled and is completed",
    ),
    "a lease is left": (do("UPDATE leases SET closed_at = NULL"), "lease l is still open"),
    "a trial is left": (
        do("UPDATE trials SET outcome = 'started', seconds = NULL WHERE id = 'j.1'"),
        "trial j.1 is still started, lease None",
    ),
    "a worker is left": (
        do("UPDATE workers SET state = 'busy'"),
        "worker x is busy after it has left: ",
    ),
    "an event is missing": (
        do("DELETE FROM events WHERE seq = 1"),
        "the events of job j are numbered [2]",
    ),
    "a faster time does not stand": (
        do("UPDATE schedules SET trial = 'j.1', seconds = 2.0"),
        "the best-known schedule of ('w', 't', 'h') has 2.0 s, and trial j.0 has 1.0 s",
    ),
    "nothing stands": (
        do("DELETE FROM schedules"),
        "there is a checked trial for ('w', 't', 'h') and no best-known schedule",
    ),
    "a time stands that its samples have not": (
        do("UPDATE schedules SET seconds = 0.5"),
        "the best-known schedule of ('w', 't', 'h') has 0.5 s, and its samples have not",
    ),
    "an unchecked trial stands": (
        do("UPDATE trials SET error = NULL WHERE id = 'j.0'"),
        "the best-known schedule of ('w', 't', 'h') is trial j.0, which may not be",
    ),
    "a server broke": (
        lambda end: end.ledger.saw("GET", "/v1/jobs", {}, b"", 500, b"oh"),
        "GET /v1/jobs was answered 500: oh",
    ),
}


@pytest.mark.parametrize("what", DOCTORED)
def test_a_doctored_end_is_complained_of(end: End, what: str) -> None:
    doctor, expected = DOCTORED[what]
    doctor(end)
    assert [said for said in end.complaints() if said.endswith(expected)] != []


def test_what_is_left_of_a_run_is_complained_of(tmp_path: Path) -> None:
    import fcntl

    from leaks import files_left, locks_held, processes_left

    left = tmp_path / "left"
    left.write_text("")
    assert list(files_left(tmp_path)) == [f"{left} is left"]
    with left.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert list(locks_held([left])) == [f"{left} is still locked"]
    assert list(locks_held([left])) == []
    import psutil

    known = {child.pid for child in psutil.Process().children(recursive=True)}
    sleeper = subprocess.Popen(["sleep", "60"])
    said = list(processes_left(known))
    assert said == [f"process {sleeper.pid} is left: sleep 60 (sleeping)"]
    assert sleeper.wait() == -9
