"""The facts of a device that only runs: its own, or those of the device that is emulated."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from run_only_device import Device, FakeServer, native

from tilewright.compiler.codegen.standalone.linux import SYSTEMS
from tilewright.compiler.codegen.standalone.relocate import AARCH64, RISCV, X86_64
from tilewright.compiler.target import Hardware, Target, detect
from tilewright.compiler.target.cpus import CPUS
from tilewright.compiler.target.features import known_features
from tilewright.compiler.target.hardware import KEY_FIELDS
from tilewright.measure.run_only import runner


def test_an_emulated_device_says_what_it_is(device: Device) -> None:
    code, said = device.run("--exec-prefix", "qemu-aarch64-static")
    assert code == 64 and "--exec-prefix and --facts go together" in said


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ("183", "its programs are for aarch64: name such a device's facts, or another emulator"),
        ("183|243", "its programs are for aarch64, riscv64: name such a device's facts, or another emulator"),
        ("none", "it says 'Invalid ELF image'"),
    ],
)
def test_facts_of_another_instruction_set_than_the_emulators_are_refused_before_it_attaches(
    server: FakeServer, device: Device, tmp_path: Path, runs: str, words: str
) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "x86_64", "mcpu": "x86-64"}))
    said = device.run("--exec-prefix", device.emulator("", runs), "--facts", str(facts))
    place = f"emulator runs no programs for x86_64, the architecture in {facts}"
    assert said == (6, f"tilewright_runner: {place}; {words}\n")
    assert server.calls == []


def test_facts_of_an_architecture_that_has_no_programs_are_refused(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "armv7l"}))
    assert device.run("--exec-prefix", device.emulator(""), "--facts", str(facts)) == (
        6,
        f"tilewright_runner: no programs are made for the architecture 'armv7l' in {facts}, "
        "but for x86_64, aarch64, riscv64\n",
    )
    assert server.calls == []


@native
def test_the_least_program_of_an_architecture_is_run_by_what_runs_its_programs(tmp_path: Path) -> None:
    assert runner.why_not_run([], "x86_64", str(tmp_path)) is None
    assert runner.why_not_run(["nice"], "x86_64", str(tmp_path)) is None
    assert "such file" in (runner.why_not_run(["/no/emulator"], "aarch64", str(tmp_path)) or "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="needs qemu-aarch64-static")
def test_an_emulator_of_aarch64_is_found_to_be_one(tmp_path: Path) -> None:
    ran = {each: runner.why_not_run(["qemu-aarch64-static"], each, str(tmp_path)) for each in runner.ENDINGS}
    assert [each for each, why in ran.items() if why is None] == ["aarch64"]


def test_facts_are_taken_as_the_probe_prints_them(device: Device, tmp_path: Path) -> None:
    facts = {"architecture": "aarch64", "vendor": "0x41", "mcpu": "cortex-a53"}
    keys = []
    for number, said in enumerate((facts, {"hardware_key": "0" * 64, "hardware": facts})):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(said))
        child = device.start("--exec-prefix", "/bin/true", "--facts", str(path), "--probe")
        keys.append(json.loads(child.communicate()[0])["hardware_key"])
    assert keys[0] == keys[1]


def test_times_of_an_emulator_are_those_of_other_hardware(device: Device, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "aarch64", "vendor": "0x41", "mcpu": "cortex-a53"}))
    child = device.start("--exec-prefix", "qemu-aarch64-static", "--facts", str(facts), "--probe")
    said = json.loads(child.communicate()[0])
    assert said["hardware"]["vendor"] == "emulated by qemu-aarch64-static: 0x41"
    assert said["hardware_key"] == Hardware.of(said["hardware"]).key


@pytest.mark.skipif(sys.platform != "linux", reason="it runs on Linux")
def test_the_facts_are_those_of_a_worker_with_a_compiler() -> None:
    own, full = runner.facts_of_this_device(), detect().facts
    names = ("architecture", "vendor", "family", "model", "stepping", "l1d", "l2", "l3", "accelerator")
    assert {n: own[n] for n in names} == {n: full[n] for n in names}
    assert set(own["features"] or ()) <= set(full["features"] or ())
    assert runner.hardware_key(own) == Hardware.of(own).key
    assert Target.parse("llvm", Hardware.of(own)).architecture == own["architecture"]


def test_its_tables_name_processors_and_features_that_the_compiler_knows() -> None:
    assert {*runner.ARM_PARTS.values(), *runner.GENERAL.values()} <= CPUS.keys()
    for architecture, words in runner.FEATURES.items():
        assert set(words.values()) <= set(known_features(architecture))
    assert tuple(runner.KEY_FIELDS) == KEY_FIELDS
    assert set(runner.ELF_MACHINES.values()) == runner.ENDINGS.keys() == SYSTEMS.keys()
    assert list(runner.ELF_MACHINES) == [X86_64, AARCH64, RISCV]
