from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from scaled import Scaled

import tilewright
from tilewright.db import open_store

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Which PostgreSQL can enter, too: it is another user where this is root."""
    with tempfile.TemporaryDirectory(prefix="tw-scaled-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


def test_the_scaled_form_needs_nothing_of_the_tests(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    said = subprocess.run(
        [sys.executable, "-P", "-c", "import scaled; print(scaled.PostgresServer.__module__)"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}/deploy:{Path(tilewright.__file__).parents[1]}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "postgres_server\n", "")


@pytest.mark.slow
def test_the_scaled_form_that_begins_again_keeps_its_tokens_but_for_those_that_open_nothing(
    folder: Path,
) -> None:
    with Scaled(folder / "data", apis=1, searches=0, workers=0) as first:
        before = first.token.read_text(), first.worker_token.read_text()
        with open_store(first.db) as store:
            revoked = store.token_by_secret(before[1].strip())
            assert revoked is not None
            store.revoke_token(revoked.id)
    with Scaled(folder / "data", apis=1, searches=0, workers=0) as second:
        after = second.token.read_text(), second.worker_token.read_text()
        with open_store(second.db) as store:
            scopes = [store.token_by_secret(value.strip()) for value in after]
            known = [(token.scopes, token.revoked_at is None) for token in store.tokens()]
    assert (after[0] == before[0], after[1] == before[1], None in scopes) == (True, False, False)
    assert known == [(("jobs:write",), True), (("worker",), False), (("worker",), True)]


@pytest.mark.slow
def test_nothing_outlives_the_scaled_form_that_is_killed(folder: Path) -> None:
    """Two API processes have a parent that is itself begun by it."""
    command = [sys.executable, DEPLOY / "scaled.py", "--data", folder / "data", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    assert program.stdout is not None
    with program.stdout:
        assert program.stdout.readline().startswith(b"http://127.0.0.1:")
        begun = psutil.Process(program.pid).children(recursive=True)
        program.kill()
        program.wait()
    _, alive = psutil.wait_procs(begun, timeout=30)
    for process in alive:
        process.kill()
    assert (len(begun) >= 8, alive) == (True, [])
