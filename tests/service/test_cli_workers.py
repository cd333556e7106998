"""`tilewright workers` and `tilewright crashes`."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from cli_commands import Command
from service_harness import (
    HARDWARE,
    Api,
    attach,
    searched,
    settle,
    without_times,
)

from tilewright.service.cli import run
from tilewright.service.client import Client


@pytest.fixture
def tw(api: Api, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Runs a command on workers with an administrator's token: its exit code, stdout and stderr."""
    token = tmp_path / "token"
    token.write_text(api.store.create_token("ops", ["admin"])[1])

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run([*arguments, "--url", api.url, "--token-file", str(token)])
        out, err = capsys.readouterr()
        return code, out, err

    return command


def test_a_name_that_holds_a_slash_is_spoken_of_like_any_other(api: Api, tw: Command) -> None:
    attach(api.store, "lab/rig 1")
    assert tw("workers", "pause", "lab/rig 1") == (0, "lab/rig 1: paused (paused by token ops)\n", "")
    assert tw("workers", "show", "lab/rig 2") == (
        1, "", "tilewright: there is no worker 'lab%2Frig 2'; did you mean 'lab/rig 1'? workers: lab/rig 1\n"
    )  # fmt: skip


def test_a_worker_is_paused_by_the_command_line(api: Api, tw: Command) -> None:
    attach(api.store)
    code, out, err = tw("workers", "pause", "w1", "--for", "30m", "--note", "new fan")
    assert (code, without_times(out), err) == (
        0,
        "w1: paused (paused for 30 min by token ops: new fan, until THEN)\n",
        "",
    )


def test_a_duration_that_is_none_is_wrong_usage(api: Api, tw: Command) -> None:
    attach(api.store)
    assert tw("workers", "pause", "w1", "--for", "long") == (
        64,
        "",
        "tilewright: --for must be a duration such as 20s, 500ms or 10m, got 'long'\n",
    )


@pytest.mark.parametrize("command", [("remove", "w1"), ("quarantine", "w1", "--note", "odd")])
def test_a_destructive_verb_asks_unless_it_is_told_yes(
    api: Api, tw: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    attach(api.store)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, err = tw("workers", *command)
    assert (code, out, "Say --yes: there is no terminal to ask" in err) == (64, "", True)
    assert api.store.find_worker("w1").state == "registering"
    assert tw("workers", *command, "--yes")[0] == 0
    assert api.store.find_worker("w1").state in ("retired", "quarantined")


def test_a_removal_tells_what_became_of_the_schedules(api: Api, tw: Command) -> None:
    searched(api.store, 1)
    settle(api.store, [1e-5], attach(api.store))
    assert tw("workers", "remove", "w1", "--discard-results", "--note", "sold", "--yes") == (
        0,
        "w1: retired (removed by token ops: sold)\n",
        "best-known schedules that rested on w1: 0 have another trial now, 1 have none\n",
    )


def test_a_change_is_shown_as_json(api: Api, tw: Command) -> None:
    worker = attach(api.store)
    code, out, err = tw("workers", "drain", "w1", "--json")
    said = json.loads(out)
    assert (code, said["worker"]["id"], said["worker"]["state"], said["replaced"], err) == (
        0,
        worker.id,
        "draining",
        0,
        "",
    )


def test_an_unknown_worker_ends_a_command_with_1(api: Api, tw: Command) -> None:
    assert tw("workers", "show", "w1") == (1, "", "tilewright: there is no worker 'w1', nor any other\n")


def test_a_verb_that_does_not_fit_ends_a_command_with_4(api: Api, tw: Command) -> None:
    attach(api.store)
    tw("workers", "pause", "w1")
    assert tw("workers", "release", "w1") == (
        4,
        "",
        "tilewright: worker w1 is paused, not quarantined: resume it\n",
    )


def test_a_worker_is_shown_with_all_that_is_known_of_it(api: Api, tw: Command) -> None:
    job = searched(api.store, 3)
    worker = attach(api.store)
    settle(api.store, [1e-5, "run_error"], worker)
    lease = api.store.claim(worker.id, worker.session, worker.hardware, 1, 30.0)
    assert lease is not None
    api.store.start(lease.id, lease.items[0].trial, 1)
    code, out, _ = tw("workers", "show", "w1")
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines()[1:])
    assert (code, rows["state"], rows["measures"], rows["results"], rows["protocol"]) == (
        0,
        "busy",
        f"{job.id}.2",
        "2, 1 of them failures",
        "1",
    )


def test_candidates_that_took_workers_with_them_are_listed_and_cleared(
    api: Api, admin: Client, tw: Command
) -> None:
    job = searched(api.store, 1)
    for session in ("a" * 32, "b" * 32, "c" * 32):
        worker = attach(api.store, session=session)
        lease = api.store.claim(worker.id, worker.session, worker.hardware, 1, 30.0)
        if lease is not None:
            api.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)
    (crash,) = admin.crashes()
    assert (crash.candidate, crash.hardware, crash.losses, crash.barred, crash.trial) == (
        "candidate0",
        HARDWARE,
        2,
        True,
        f"{job.id}.0",
    )
    assert tw("crashes", "clear", "candidate0") == (
        0,
        "",
        f"candidate0 may run again on hardware {HARDWARE[:12]}\n",
    )
    assert admin.crashes() == []
    assert tw("crashes", "clear", "candidate0")[0] == 1
