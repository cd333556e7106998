"""Tokens in files, commands that need one, and the program's version."""

from __future__ import annotations

import json
import stat
from importlib.metadata import version
from pathlib import Path

import pytest
from cli_commands import Capture, Command

from tilewright.db import Store
from tilewright.service.cli import run

NEEDED = (
    "tilewright: a worker needs a token: make one with `tilewright token create --scope worker` where the "
    "server's database is, and name its file with --token-file or TILEWRIGHT_TOKEN_FILE"
)


@pytest.fixture
def tw(capsys: Capture) -> Command:
    """Runs a command in this process: its exit code, stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def create(store: Store, tw: Command, tmp_path: Path) -> Command:
    """Runs `token create` for a worker."""
    db = f"sqlite:///{tmp_path}/tilewright.db"
    return lambda *more: tw("token", "create", "--db", db, "--scope", "worker", *more)


def test_a_token_can_be_written_to_a_file_instead_of_shown(
    store: Store, create: Command, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    code, out, err = create("--out", str(file))
    token = store.token_by_secret(file.read_text().strip())
    assert token is not None
    assert (code, out, err) == (
        0,
        "",
        f"token {token.id} of 'cli', worker, does not expire; its value is in {file}\n",
    )


def test_a_tokens_file_is_for_its_owner_alone(create: Command, tmp_path: Path) -> None:
    create("--out", str(tmp_path / "token"))
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_a_token_in_a_file_as_json_names_the_file(create: Command, tmp_path: Path) -> None:
    document = json.loads(create("--out", str(tmp_path / "token"), "--json")[1])
    assert (document["file"], document["token"]["scopes"], "value" in document) == (
        str(tmp_path / "token"),
        ["worker"],
        False,
    )


def test_a_tokens_file_that_is_there_is_left_alone_and_no_token_is_made(
    store: Store, create: Command, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("mine")
    answer = create("--out", str(tmp_path / "token"))
    assert (answer, (tmp_path / "token").read_text(), store.tokens()) == (
        (64, "", f"tilewright: --out {tmp_path}/token cannot be made: File exists\n"),
        "mine",
        [],
    )


def test_a_worker_without_a_token_ends_with_3_at_once_and_says_how_to_get_one(tw: Command) -> None:
    assert tw("worker", "run", "--url", "http://127.0.0.1:1") == (3, "", f"{NEEDED}\n")


def test_a_worker_with_an_empty_token_ends_with_3_at_once_and_says_so(tw: Command, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    answer = tw("worker", "run", "--url", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"))
    assert answer == (3, "", f"{NEEDED}; the one that is set is empty\n")


def test_the_program_says_its_version(tw: Command) -> None:
    assert tw("--version") == (0, f"tilewright {version('tilewright')}\n", "")


def test_a_token_has_the_limits_that_it_is_made_with(store: Store, create: Command) -> None:
    _, out, _ = create("--max-jobs", "2", "--max-trials", "500", "--rate", "5", "--json")
    made = json.loads(out)["token"]
    assert (made["max_jobs"], made["max_trials"], made["rate"]) == (2, 500, 5.0)
    (kept,) = store.tokens()
    assert (kept.max_jobs, kept.max_trials, kept.rate) == (2, 500, 5.0)


def test_what_commands_do_to_tokens_is_in_the_audit_log(
    store: Store, create: Command, tw: Command, tmp_path: Path
) -> None:
    value = json.loads(create("--json")[1])["value"]
    (token,) = store.tokens()
    db = f"sqlite:///{tmp_path}/tilewright.db"
    tw("token", "revoke", token.id, "--db", db)
    _, out, _ = tw("audit", "list", "--db", db, "--json")
    entries = [(e["actor"], e["verb"], e["subject"], e["outcome"]) for e in json.loads(out)]
    assert entries == [
        ("command line", "revoke_token", token.id, "done"),
        ("command line", "create_token", token.id, "done"),
    ]
    table = tw("audit", "list", "--db", db, "--limit", "1")[1]
    assert ("revoke_token" in table, "create_token" in table, value in out + table) == (True, False, False)
