"""A token is nowhere but where it was written to: not in the database, a message, a log or a process list."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from service_harness import ENVIRONMENT, Api

from tilewright.db import Store, open_store
from tilewright.service.cli import run
from tilewright.service.cli.output import say, show, show_json, table, visible
from tilewright.service.transport import Transport

ESCAPES = "w\x1b[2J\x1b]0;owned\x07\x9b1m\r\nforged\u202e\u2066\u200b\U000e0001"


def test_the_database_holds_no_token(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with open_store(f"sqlite:///{path}") as store:
        secrets = [store.create_token("t", ["admin"])[1] for _ in range(3)]
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert [secret for secret in secrets if secret.encode() in held or secret[4:].encode() in held] == []


def test_no_error_and_no_setting_shows_a_token(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "token"
    file.write_text("twk_secret\n")
    file.chmod(0o600)
    monkeypatch.setenv("TILEWRIGHT_TOKEN_FILE", str(file))
    commands = [
        ["config", "show"],
        ["config", "show", "--json"],
        ["jobs", "list", "--url", "http://127.0.0.1:9"],
        ["jobs", "list", "--url", "http://tune.example"],
        ["worker", "probe"],
    ]
    for command in commands:
        run(command)
    said = capfd.readouterr()
    assert "twk_secret" not in said.out + said.err + caplog.text


def test_no_command_takes_a_token_where_everybody_can_read_it() -> None:
    for command in (["jobs", "list"], ["worker", "run"], ["best", "matmul"]):
        done = subprocess.run(
            [sys.executable, "-m", "tilewright.service.command", *command, "--help"],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
        )
        assert (done.returncode, "--token " in done.stdout) == (0, False)


def test_a_token_that_is_written_is_readable_by_its_owner_alone_from_the_first_moment(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = tmp_path / "token"
        code = run(
            ["token", "create", "--scope", "worker", "--db", f"sqlite:///{tmp_path}/t.db", "--out", str(file)]
        )
    finally:
        os.umask(before)
    assert (code, stat.S_IMODE(file.stat().st_mode)) == (0, 0o600)


def test_no_answer_and_no_log_of_the_server_shows_a_token(
    api: Api, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    _, secret = store.create_token("t", ["admin"])
    texts = []
    for value in (secret, secret + "x"):
        for path in ("/v1/tokens", "/v1/jobs", "/v1/nothing", "/openapi.json", "/v1/jobs/x", "/v1/workers"):
            texts.append(api.http.get(path, headers={"Authorization": f"Bearer {value}"}).text)
    assert [text for text in texts if secret in text] == []
    assert secret not in caplog.text


def test_a_transport_does_not_show_its_token() -> None:
    with Transport("https://tune.example", "twk_secret", insecure_http=False, timeout=1) as transport:
        assert "twk_secret" not in repr(transport)


def test_what_acts_on_a_terminal_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of jobs, workers and labels come from others."""
    say(f"worker {ESCAPES} is there")
    show_json({"name": ESCAPES})
    print(*table(["name"], [[ESCAPES]]), sep="\n")
    said = capsys.readouterr()
    acting = {c for c in said.out + said.err if c in "\x1b\x07\x9b\r\u202e\u2066\u200b\U000e0001"}
    assert acting == set()
    assert len(table(["name"], [[ESCAPES]])) == 2
    assert json.loads(said.out[: said.out.index("}") + 1]) == {"name": ESCAPES}


def test_a_line_stays_one_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\nb")
    show({}, False, lambda: "worker a\nb")
    show({}, False, lambda: [f"worker {ESCAPES}", "is there"])
    said = capsys.readouterr()
    assert said.err == "a\\nb\n"
    assert said.out.splitlines() == [
        "worker a\\nb",
        "worker w\\u001b[2J\\u001b]0;owned\\u0007\\u009b1m\\r\\nforged\\u202e\\u2066\\u200b\\udb40\\udc01",
        "is there",
    ]


def test_what_does_nothing_to_a_terminal_stays() -> None:
    text = "Überprüfung №7 — 漢字 😀\n\tx"
    assert visible(text, "\n\t") == text
