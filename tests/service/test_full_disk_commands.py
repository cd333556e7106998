"""Commands on a full disk: one line, exit code 1, and no file that was not there before."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Command
from small_disks import Mounted, ballast
from test_exchange import plus, record

from tilewright.db import Store, backup, open_store


@pytest.fixture
def disk(small_disk: Mounted, tmp_path: Path) -> Path:
    """A disk without a free byte."""
    place = small_disk(tmp_path / "disk", 1)
    ballast(place, 0)
    return place


def files(disk: Path) -> list[str]:
    return sorted(each.name for each in disk.iterdir() if each.name != "ballast")


def test_a_token_whose_value_cannot_be_kept_is_not_made(
    store: Store, url: str, disk: Path, tw: Command
) -> None:
    answer = tw("token", "create", "--scope", "worker", "--out", str(disk / "token"), "--db", url)
    assert answer == (1, "", f"tilewright: --out {disk}/token: the disk is full; nothing was kept\n")
    assert (files(disk), store.tokens()) == ([], [])


def test_a_token_whose_value_cannot_be_printed_is_revoked(store: Store, url: str) -> None:
    assert printed_to_full("token", "create", "--scope", "worker", "--db", url) == (
        1,
        "tilewright: standard output: the disk is full",
    )
    assert [token.revoked_at is not None for token in store.tokens()] == [True]


def test_an_answer_that_cannot_be_printed_is_told_in_a_line(store: Store, url: str) -> None:
    assert printed_to_full("best", "list", "--db", url) == (
        1,
        "tilewright: standard output: the disk is full",
    )


def printed_to_full(*words: str) -> tuple[int, str]:
    """A command whose standard output takes nothing: its exit code, and its last line."""
    with open("/dev/full", "w") as full:
        code, _, err = program(*words, stdout=full)
    assert "Traceback" not in err
    return code, err.splitlines()[-1]


def program(*words: str, stdout: Any = subprocess.PIPE) -> tuple[int, str, str]:
    """A command in a process of its own: its exit code, stdout and stderr."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tilewright.service.cli", *words]
    done = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment, timeout=60
    )
    return done.returncode, done.stdout or "", done.stderr


@pytest.mark.parametrize(("name", "more"), [("b.db", ()), ("b.gz", ("--portable",))])
def test_a_backup_onto_it_is_refused_and_leaves_no_part(
    store: Store, url: str, disk: Path, tw: Command, name: str, more: tuple[str, ...]
) -> None:
    answer = tw("db", "backup", str(disk / name), "--db", url, *more)
    assert answer == (1, "", f"tilewright: {disk}/{name}: the disk is full; nothing was kept\n")
    assert files(disk) == []


def test_an_export_onto_it_is_refused_and_leaves_no_part(
    store: Store, url: str, disk: Path, tw: Command
) -> None:
    record(store, plus(12), 1e-3)
    answer = tw("best", "export", "--out", str(disk / "e.jsonl"), "--db", url)
    assert answer == (1, "", f"tilewright: --out {disk}/e.jsonl: the disk is full; nothing was kept\n")
    assert files(disk) == []


def test_a_server_that_cannot_say_that_it_is_ready_ends_and_leaves_no_file(url: str, disk: Path) -> None:
    options = ("--db", url, "--port", "0", "--no-search", "--ready-file", str(disk / "ready"))
    code, out, err = program("serve", *options)
    said = f"tilewright: the ready file {disk}/ready cannot be written: No space left on device"
    assert (code, out, err.splitlines()[-1], files(disk)) == (1, "", said, [])


@pytest.mark.parametrize("room", [0, 4_096, 40_960])
@pytest.mark.parametrize("words", [("db", "upgrade"), ("db", "restore"), ("serve", "--port", "0")])
def test_a_database_that_cannot_be_made_there_is_not_there(
    store: Store,
    url: str,
    small_disk: Mounted,
    tmp_path: Path,
    tw: Command,
    words: tuple[str, ...],
    room: int,
) -> None:
    disk = small_disk(tmp_path / "disk", 1)
    ballast(disk, room)
    source = []
    if words == ("db", "restore"):
        source = [str(tmp_path / "good.gz")]
        backup(url, Path(source[0]), portable=True)
    run = program if words[0] == "serve" else tw
    code, out, err = run(*words, *source, "--db", f"sqlite:///{disk}/new.db")
    assert (code, out, err.count("\n"), files(disk)) == (1, "", 1, [])
    assert err.startswith(f"tilewright: {disk}/new.db: ")


@pytest.fixture
def half(url: str, store: Store, tmp_path: Path) -> Path:
    """A backup that was cut off."""
    record(store, plus(12), 1e-3)
    backup(url, tmp_path / "whole.gz", portable=True)
    lines = gzip.decompress((tmp_path / "whole.gz").read_bytes())
    (tmp_path / "half.gz").write_bytes(gzip.compress(lines[: len(lines) // 2]))
    return tmp_path / "half.gz"


def test_a_damaged_backup_leaves_no_database_where_none_was(half: Path, tmp_path: Path, tw: Command) -> None:
    place = tmp_path / "place"
    place.mkdir()
    code, _, err = tw("db", "restore", str(half), "--db", f"sqlite:///{place}/new.db")
    assert (code, err.startswith(f"tilewright: backup: {half} ")) == (1, True)
    assert files(place) == []


def test_a_damaged_backup_leaves_a_database_that_was_there(half: Path, tmp_path: Path, tw: Command) -> None:
    there = f"sqlite:///{tmp_path}/there.db"
    with open_store(there) as store:
        value = store.create_token("mine", ["worker"])[1]
    assert tw("db", "restore", str(half), "--db", there, "--replace", "--yes")[0] == 1
    with open_store(there, create=False) as store:
        assert store.token_by_secret(value) is not None


def test_an_empty_file_that_was_there_is_left(half: Path, tmp_path: Path, tw: Command) -> None:
    (tmp_path / "mine.db").touch()
    assert tw("db", "restore", str(half), "--db", f"sqlite:///{tmp_path}/mine.db")[0] == 1
    assert (tmp_path / "mine.db").exists()
