"""A device that only runs fetches its programs and data by digest, and runs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from run_only_device import Device, FakeServer, adding, data, native, program

from tilewright.compiler.codegen.standalone import standalone_program
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target


@native
def test_bytes_of_another_digest_are_never_run(server: FakeServer, device: Device, tmp_path: Path) -> None:
    proof = tmp_path / "it ran"
    good = data(adding(1), tmp_path)
    server.add(program(adding(1)), good)
    evil = b"#!/bin/sh\ntouch '" + str(proof).encode() + b"'\n"
    sha256 = server.items[0]["program"]["sha256"]
    server.artifacts[sha256] = evil.ljust(server.items[0]["program"]["bytes"], b"#")
    code, _ = device.run()
    (result,) = server.results
    assert (code, result["failure"]["kind"]) == (0, "run_error")
    assert result["failure"]["message"] == (
        f"/v1/artifacts/{sha256} has other bytes than its digest says; it was not run"
    )
    assert not proof.exists() and "start" not in server.verbs()


@native
@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"more"])
def test_data_that_is_cut_off_or_longer_is_not_used(
    server: FakeServer, device: Device, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    server.add(program(adding(1)), data(adding(1), tmp_path))
    sha256 = server.items[0]["data"]["sha256"]
    server.artifacts[sha256] = change(server.artifacts[sha256])
    device.run()
    assert server.results[0]["failure"]["message"].endswith("it was not run")


@native
def test_a_program_that_is_missing_fails_its_trial_alone(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    good = data(adding(1), tmp_path)
    server.add(program(adding(2)), good)
    server.add(program(adding(1)), good)
    path = f"/v1/artifacts/{server.items[0]['program']['sha256']}"
    server.answers[path] = (404, {"code": "not-found", "detail": "there is no such artifact"})
    assert device.run()[0] == 0
    first, second = server.results
    assert first["failure"]["message"] == "there is no such artifact"
    assert second["seconds"] > 0


@native
def test_a_program_for_another_instruction_set_is_not_run_and_both_are_named(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    other = Target.parse("llvm -mcpu=cortex-a53")
    func = default_schedule(adding(1), other).func
    server.add(standalone_program(func, other), data(adding(1), tmp_path))
    code, _ = device.run()
    (result,) = server.results
    assert (code, result["failure"]["kind"], result["failure"]["message"]) == (
        0,
        "run_error",
        "the program is for aarch64, another instruction set than this device's, x86_64; it was not run: "
        "submit the job for the device's target",
    )
    assert "start" not in server.verbs()
