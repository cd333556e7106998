"""A device that only runs times a right program, and tells why another one has no time."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import psutil
import pytest
from run_only_device import LIMITS, Device, FakeServer, adding, data, looping, native, program

from tilewright.compiler import topi
from tilewright.compiler.codegen.dims import params_of
from tilewright.compiler.codegen.standalone import Layout
from tilewright.measure import timing
from tilewright.measure.run_only import runner


@native
def test_what_is_said_of_a_candidate_carries_the_trace_of_its_job(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    func = topi.create({"op": "matmul", "m": 32, "n": 32, "k": 32})
    trace = f"00-{'1' * 32}-{'2' * 16}-01"
    server.add(program(func), data(func, tmp_path), traceparent=trace)
    assert device.run()[0] == 0
    assert (server.traces["/v1/workers"], server.traces["start"], server.traces["settle"]) == (
        None,
        trace,
        trace,
    )


@native
def test_a_right_program_is_timed_and_its_error_told(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    func = topi.create({"op": "matmul", "m": 32, "n": 32, "k": 32})
    server.add(program(func), data(func, tmp_path))
    assert device.run()[0] == 0
    (result,) = server.results
    assert result["seconds"] == min(result["samples"]) > 0
    assert len(result["samples"]) >= 3 and 0 < result["error"] <= 1
    assert server.verbs() == ["start", "settle", "leave"]
    assert {token for _, token in server.headers} == {"Bearer secret"}


@native
def test_a_wrong_program_has_no_time(server: FakeServer, device: Device, tmp_path: Path) -> None:
    server.add(program(adding(2)), data(adding(1), tmp_path))
    device.run()
    (result,) = server.results
    assert "seconds" not in result and result["failure"]["last_words"] == ""
    assert result["failure"]["kind"] == "wrong_output"
    assert result["failure"]["message"].endswith("4096 elements are wrong")


@native
def test_a_program_that_takes_too_long_is_ended(server: FakeServer, device: Device, tmp_path: Path) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    size = Layout.of(params_of(func)).bytes
    server.add(looping(), bytes(size), limits={**LIMITS, "run_seconds": 0.5})
    device.run()
    failure = server.results[0]["failure"]
    assert (failure["kind"], failure["message"], failure["limit"]) == (
        "run_timeout", "the run took longer than its limit of 0.5 s", 0.5,
    )  # fmt: skip
    assert 0.5 <= failure["elapsed"] < 5.0


@native
def test_a_first_call_that_is_many_times_slower_than_the_best_is_out_of_the_race(
    server: FakeServer, device: Device
) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    server.add(looping(), bytes(Layout.of(params_of(func)).bytes), best_seconds=1e-5)
    device.run()
    (result,) = server.results
    assert result.get("failure") is None
    assert (result["censored"], result["seconds"], result["samples"]) == (True, 0.1, [0.1])


@native
@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ("kill -SEGV $$", "it died of SIGSEGV while running"),
        ("exit 3", "it exited with status 3 while running, without a result"),
        ("cat", "it exited with status 0 while running, without a result"),
    ],
)
def test_how_a_program_dies_is_told(
    server: FakeServer, device: Device, tmp_path: Path, shell: str, message: str
) -> None:
    # A script stands in for a program of machine code: it needs files of its own, as an emulator does.
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "aarch64", "mcpu": "cortex-a53"}))
    server.add(f"echo last words >&2\n{shell} </dev/null\n".encode(), b"data")
    device.run("--exec-prefix", device.emulator('exec sh "$1"'), "--facts", str(facts))
    failure = server.results[0]["failure"]
    assert (failure["kind"], failure["message"], failure["last_words"]) == (
        "run_error", message, "last words",
    )  # fmt: skip


@native
def test_a_program_is_confined(server: FakeServer, device: Device, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "aarch64"}))
    words = "id -u; ulimit -c; ulimit -f; env | grep -c SECRET; grep NoNewPrivs /proc/self/status"
    words += "; ls /proc/self/fd"
    server.add(f"({words}) >&2\n".encode(), b"data")
    device.run("--exec-prefix", device.emulator('exec sh "$1"'), "--facts", str(facts))
    said = server.results[0]["failure"]["last_words"].split()
    user = "65534" if os.geteuid() == 0 else str(os.geteuid())
    # The last of the descriptors is that of the folder itself, which `ls` reads.
    assert said[:6] == [user, "0", "0", "0", "NoNewPrivs:", "1"]
    assert set(said[6:]) <= {"0", "1", "2", "3", "4"}


@native
def test_a_killed_runner_takes_its_program_with_it(server: FakeServer, device: Device) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    server.add(looping(), bytes(Layout.of(params_of(func)).bytes))
    child = device.start()

    def programs() -> list[psutil.Process]:
        place = device.folder / "work"
        found = psutil.process_iter(["cmdline"])
        return [p for p in found if place in Path((p.info["cmdline"] or [""])[0]).parents]

    while not programs():
        time.sleep(0.01)
    (running,) = programs()
    child.kill()
    child.communicate()
    running.wait(5)
    # What it could not remove is removed by the next one.
    server.calls.clear()
    server.items.clear()
    assert device.run()[0] == 3


def test_its_race_is_that_of_every_worker() -> None:
    names = (
        *("SAMPLES", "SAMPLE_SECONDS", "ENOUGH_SECONDS", "CONTENDER_SECONDS", "NEAR", "CENSOR_RATIOS"),
        *("COLD_RATIO", "FIRST_SECONDS", "FIRST_RATIO"),
    )
    assert {n: getattr(runner, n) for n in names} == {n: getattr(timing, n) for n in names}


def test_enough_calls_fill_a_sample() -> None:
    assert runner.enough(1, 1e-6) == 100
    assert runner.enough(1, 1.0) == 1
    assert runner.enough(100, 1e-3) == 221
