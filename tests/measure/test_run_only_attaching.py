"""How the runner of a device that only runs attaches, what it refuses, and how it ends."""

from __future__ import annotations

import ast
import signal
import sys
import time
from pathlib import Path

import pytest
from run_only_device import LIMITS, SCRIPT, Device, FakeServer, looping, native

from tilewright.compiler import topi
from tilewright.compiler.codegen.dims import params_of
from tilewright.compiler.codegen.standalone import Layout
from tilewright.measure.device import Device as Processors
from tilewright.measure.device_lock import DeviceLock
from tilewright.measure.messages import PROTOCOL
from tilewright.measure.run_only import runner


@native
def test_sigterm_drains_and_the_rest_is_given_back(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    for _ in range(3):
        server.add(looping(), bytes(Layout.of(params_of(func)).bytes), limits={**LIMITS, "run_seconds": 2.0})
    child = device.start()
    while "start" not in server.verbs():
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    assert child.returncode == 0
    assert [result["failure"]["kind"] for result in server.results] == ["run_timeout"]
    assert server.verbs() == ["start", "settle", "release", "leave"]


def test_a_device_that_the_server_drains_ends(server: FakeServer, device: Device) -> None:
    server.drains = True
    assert device.run() == (0, "attached as w1\ndrained\n")


@pytest.mark.parametrize(("status", "code"), [(404, "not-found"), (409, "attach-again")])
def test_a_device_attaches_again_where_the_server_asks_it_to(
    server: FakeServer, device: Device, status: int, code: str
) -> None:
    server.answers["/v1/leases"] = (status, {"code": code, "detail": "for this reason"})
    child = device.start()
    sessions = set()
    while len(sessions) < 2:
        time.sleep(0.01)
        sessions = {said["session"] for path, said in list(server.calls) if path == "/v1/workers"}
    child.terminate()
    assert child.wait(20) == 0


@native
def test_a_lease_is_renewed_while_a_program_runs(server: FakeServer, device: Device, tmp_path: Path) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    server.renew_seconds = 0.1
    server.add(looping(), bytes(Layout.of(params_of(func)).bytes), limits={**LIMITS, "run_seconds": 1.0})
    device.run()
    assert server.renewed.is_set()


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("token-wrong", 3),
        ("scope-missing", 3),
        ("superseded", 5),
        ("name-retired", 6),
        ("protocol-refused", 7),
    ],
)
def test_what_ends_a_runner_has_its_exit_code(
    server: FakeServer, device: Device, code: str, exit_code: int
) -> None:
    server.answers["/v1/workers"] = (403, {"code": code, "detail": "for this reason"})
    status, said = device.run()
    assert (status, said) == (exit_code, "tilewright_runner: for this reason\n")


def test_a_redirect_does_not_take_the_token_elsewhere(server: FakeServer, device: Device) -> None:
    server.answers["/v1/workers"] = (302, {"Location": f"{server.url}/elsewhere"})
    code, _ = device.run()
    assert code != 0
    assert {path for path, _ in server.headers} == {"/v1/workers"}


def test_a_token_is_not_sent_in_the_clear(device: Device) -> None:
    device.url = "http://tune.example"
    assert device.run() == (
        3, "tilewright_runner: refusing to send the token over http: use https, or --insecure-http\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--label", "rpi3"], 64, "--label must be key=value, got 'rpi3'"),
        (["--token-file", "/no/tok"], 6, "the token file /no/tok cannot be read: No such file or directory"),
        (["--work-dir", "/no/dir"], 6, "programs cannot be put into /no/dir: No such file or directory"),
        (
            ["--exec-prefix", "no-emulator", "--facts", "x"],
            6,
            "the emulator no-emulator is not there, or no program",
        ),
        (
            ["--exec-prefix", "/bin/true", "--facts", "/dev/null"],
            6,
            "the facts in /dev/null cannot be read: Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_attached(
    server: FakeServer, device: Device, options: list[str], code: int, words: str
) -> None:
    assert device.run(*options) == (code, f"tilewright_runner: {words}\n")
    assert server.calls == []


def test_wrong_usage_does_not_end_like_a_server_that_is_away(device: Device) -> None:
    code, said = device.run("--nmae", "board")
    assert code == 64 and said.endswith("unrecognized arguments: --nmae board\n")


def test_a_device_measures_one_thing_at_a_time(server: FakeServer, device: Device) -> None:
    with DeviceLock(Processors.parse("cpu"), "other", device.folder / "locks").acquire():
        code, said = device.run()
    assert code == 8 and "is in use by another worker" in said
    assert server.calls == []
    assert device.run()[0] != 8


def test_the_runner_is_one_file_of_python_3_9_and_its_standard_library() -> None:
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import)
            else [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported <= sys.stdlib_module_names
    assert not imported & {"pickle", "marshal", "importlib", "runpy"}
    assert "__future__" in imported  # Python 3.9 cannot evaluate `int | None`


def test_it_speaks_the_protocol_of_the_release_it_comes_with() -> None:
    assert runner.PROTOCOL == PROTOCOL
