"""A candidate is confined: it cannot read the worker's token, reach the network or another process, or leave
anything behind. Each test tries, in a real child of a real fork server."""

from __future__ import annotations

import os
import socket
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_processes import own_children

from tilewright.measure import landlock
from tilewright.measure.messages import Limits, MeasureInput
from tilewright.measure.runner import Runner

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner("escapes:Escapes") as runner:
        yield runner
    assert own_children(recursive=True) == []


def item(behaviour: str, limits: Limits | None = None, **trace: Any) -> MeasureInput:
    return MeasureInput("trial_1", 1, {}, {}, {"behaviour": behaviour, **trace}, 0, limits or Limits())


def attempted(runner: Runner, *attempts: tuple[Any, ...]) -> Any:
    named = [[name, list(arguments)] for name, *arguments in attempts]
    failure = runner.measure(item("tell", attempts=named)).failure
    assert failure is not None and failure.kind == "run_error"
    return literal_eval(failure.message.removeprefix("LookupError: "))


@pytest.fixture(scope="module")
def knows_landlock() -> None:
    """Files are taken away by the kernel; where that cannot, users and modes are all there is."""
    if landlock.version() == 0:
        pytest.skip("this kernel has no Landlock")


def test_it_reads_no_file_of_the_worker_not_even_one_that_everybody_may(
    runner: Runner, tmp_path: Path, knows_landlock: None
) -> None:
    token = tmp_path / "token"
    token.write_text("twk_secret")
    for folder in (token, tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o777)
    assert attempted(runner, ("read", str(token)), ("read", "/etc/passwd")) == {"read": "PermissionError"}


def test_it_reads_no_token_that_only_its_owner_may(runner: Runner, tmp_path: Path) -> None:
    if not ROOT:
        pytest.skip("only a worker that runs as root has another user for candidates")
    token = tmp_path / "token"
    token.write_text("twk_secret")
    token.chmod(0o600)
    assert attempted(runner, ("read", str(token))) == {"read": "PermissionError"}


def test_it_reads_no_memory_and_no_environment_of_the_worker(runner: Runner) -> None:
    assert attempted(runner, ("trace", os.getpid()), ("peek", os.getpid())) == {
        "trace": "PermissionError",
        "peek": "PermissionError",
    }


def test_it_signals_nobody(runner: Runner) -> None:
    (server,) = own_children()
    assert [attempted(runner, ("signal", pid)) for pid in (os.getpid(), server.pid)] == [
        {"signal": "PermissionError"},
        {"signal": "PermissionError"},
    ]


def test_it_reaches_no_network_and_no_local_server(runner: Runner, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "socket"))
        local.listen()
        host, port = server.getsockname()
        came = attempted(
            runner,
            ("connect", host, port),
            ("datagram", host, port),
            ("local", str(tmp_path / "socket")),
            ("listen",),
        )
    assert came == dict.fromkeys(("connect", "datagram", "local", "listen"), "PermissionError")


def test_it_writes_no_file(runner: Runner, tmp_path: Path, knows_landlock: None) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o777)
    before = sorted(os.listdir("/tmp"))
    came = attempted(runner, ("write", str(tmp_path / "left")), ("temporary",))
    assert came["write"] == "PermissionError"
    assert came["temporary"] in ("PermissionError", "FileNotFoundError", "OSError")
    assert (os.listdir(tmp_path), sorted(os.listdir("/tmp"))) == ([], before)


def test_it_starts_no_process_and_no_program(runner: Runner) -> None:
    assert attempted(runner, ("fork",), ("run",)) == {"fork": "BlockingIOError", "run": "PermissionError"}


def test_it_undoes_none_of_its_limits(runner: Runner) -> None:
    came = attempted(runner, ("become_root",), ("unshare",), ("leave_the_group",))
    assert came == {"become_root": "PermissionError", "unshare": "PermissionError", "leave_the_group": False}
    with pytest.raises(ValueError, match="not allowed to raise maximum limit"):
        raise ValueError(_said(runner, ("raise_limits",)))


def _said(runner: Runner, attempt: tuple[Any, ...]) -> str:
    failure = runner.measure(item("tell", attempts=[[attempt[0], []]])).failure
    assert failure is not None
    return failure.message


def test_it_inherits_no_descriptor_and_no_environment(runner: Runner) -> None:
    os.environ["TILEWRIGHT_TOKEN"] = "twk_secret"
    try:
        assert attempted(runner, ("descriptors",), ("environment",)) == {
            "descriptors": [0, 1, 2, 3],
            "environment": [
                "LC_ALL",
                "MKL_NUM_THREADS",
                "OMP_NUM_THREADS",
                "OPENBLAS_NUM_THREADS",
                "PYTHONPATH",
            ],
        }
    finally:
        del os.environ["TILEWRIGHT_TOKEN"]


def test_a_flood_of_output_is_read_and_forgotten(runner: Runner) -> None:
    (server,) = own_children()
    before = server.memory_info().rss
    failure = runner.measure(item("flood", Limits(10.0, 1.0, 1 << 30))).failure
    assert failure is not None
    assert (failure.kind, len(failure.last_words)) == ("run_timeout", 8_000)
    assert server.memory_info().rss - before < 16 << 20


def test_leaving_its_group_does_not_save_it(runner: Runner) -> None:
    (server,) = own_children()
    failure = runner.measure(item("setsid", Limits(10.0, 0.3, 1 << 30))).failure
    assert failure is not None and failure.kind == "run_timeout"
    assert server.children(recursive=True) == []
