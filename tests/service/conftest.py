"""What the tests of the service share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.db import Store, open_store

sys.path.insert(0, str(Path(__file__).parent))

from cli_commands import Capture, Command
from lease_caller import HELLO, Caller
from service_harness import Api, Switch, served, serving_at
from small_disks import Mounted, mounting

from tilewright.service.cli import run
from tilewright.service.client import Client


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of the store."""
    return f"sqlite:///{tmp_path}/tilewright.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_server() -> Iterator[tuple[str, Switch]]:
    """One server for all tests that do not need their own: its URL, and what it serves."""
    switch = Switch()
    with served(switch) as url:
        yield url, switch


@pytest.fixture
def api(store: Store, shared_server: tuple[str, Switch]) -> Iterator[Api]:
    with serving_at(*shared_server, store) as running:
        yield running


@pytest.fixture
def tw(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process: its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def small_disk() -> Iterator[Mounted]:
    """Mounts a disk of so many MB at a new folder, which is gone with the test."""
    with mounting() as mounted:
        yield mounted


@pytest.fixture
def admin(api: Api) -> Iterator[Client]:
    """A client with an administrator's token."""
    with Client(api.url, api.store.create_token("ops", ["admin"])[1]) as client:
        yield client


@pytest.fixture
def caller(api: Api) -> Caller:
    """An attached worker."""
    headers = api.token("worker")
    worker = api.http.post("/v1/workers", json=HELLO, headers=headers).json()["worker"]
    return Caller(api, headers, worker)
