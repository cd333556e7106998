"""The machine at hand: its key, its facts, and the target that they mean."""

import json
from pathlib import Path

import pytest

from tilewright.compiler.target import Hardware, Target, TargetError, detect
from tilewright.compiler.target import hardware as hardware_module
from tilewright.compiler.target import host as host_module
from tilewright.compiler.target.hardware import KEY_FIELDS
from tilewright.compiler.target.host import Caches, host_caches, host_cpu

ZEN = {
    "architecture": "x86_64",
    "vendor": "AuthenticAMD",
    "family": "25",
    "model": "17",
    "stepping": "1",
    "features": ["avx", "avx2", "fma", "sse2"],
    "l1d": 32768,
    "l2": 1048576,
    "l3": 33554432,
    "accelerator": None,
    "mcpu": "znver4",
    "governor": "powersave",
}


def test_a_machine_is_the_same_each_time_it_is_detected() -> None:
    assert detect().key == detect().key


def test_facts_are_plain_json() -> None:
    facts = detect().facts
    assert json.loads(json.dumps(facts)) == facts


def test_facts_make_the_same_machine_elsewhere() -> None:
    machine = detect()
    assert Hardware.of(json.loads(json.dumps(machine.facts))) == machine


def test_the_facts_hold_all_that_forms_the_key() -> None:
    assert set(KEY_FIELDS) <= set(detect().facts)


def test_the_key_of_a_machine_never_changes() -> None:
    # Stored records are found by it: a change here loses them all.
    assert Hardware.of(ZEN).key == "5bd6b174bd48e5e213a332fa2f43cdffaf14e90073e7e6619f58206a5c7fb994"


def test_what_does_not_decide_speed_is_not_in_the_key() -> None:
    assert Hardware.of({**ZEN, "governor": "performance"}).key == Hardware.of(ZEN).key


@pytest.mark.parametrize("name", KEY_FIELDS)
def test_each_fact_of_the_key_changes_it(name: str) -> None:
    assert Hardware.of({**ZEN, name: "other"}).key != Hardware.of(ZEN).key


def test_host_means_the_machine_that_the_facts_describe() -> None:
    target = Target.parse("llvm", Hardware.of(ZEN))
    assert str(target) == str(
        Target.parse(
            {
                "kind": "llvm",
                "mcpu": "znver4",
                "features": ["avx", "avx2", "fma", "sse2"],
                "l1d": 32768,
                "l2": 1048576,
                "l3": 33554432,
            }
        )
    )


def test_the_detected_machine_means_the_same_target_as_the_host() -> None:
    assert Target.parse("llvm", detect()) == Target.parse("llvm")


def test_a_machine_without_a_code_generator_is_no_target() -> None:
    machine = Hardware.of({"architecture": "sparc64"})
    with pytest.raises(TargetError) as caught:
        Target.parse("llvm", machine)
    assert str(caught.value) == (
        f"target llvm: mcpu=host: no code generator for the processor of hardware {machine.key[:12]}"
    )


def test_a_host_without_a_code_generator_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "architecture", lambda: "sparc64")
    with pytest.raises(TargetError) as caught:
        host_cpu.__wrapped__()
    assert str(caught.value) == (
        "mcpu=host: no code generator for 'sparc64'; known architectures: x86_64, aarch64, riscv64"
    )


def cache(folder: Path, level: str, kind: str, size: str) -> None:
    folder.mkdir(parents=True)
    for name, word in (("level", level), ("type", kind), ("size", size)):
        (folder / name).write_text(f"{word}\n")


def test_caches_are_read_as_linux_lists_them(tmp_path: Path) -> None:
    cache(tmp_path / "index0", "1", "Data", "48K")
    cache(tmp_path / "index1", "1", "Instruction", "32K")
    cache(tmp_path / "index2", "2", "Unified", "2M")
    cache(tmp_path / "index3", "3", "Unified", "32768K")
    assert host_caches(tmp_path) == Caches(48 << 10, 2 << 20, 32 << 20)


def test_caches_of_a_system_that_lists_none_are_unknown(tmp_path: Path) -> None:
    assert host_caches(tmp_path / "none") == Caches(None, None, None)


def test_an_arm_processor_is_identified_by_its_codes(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(
        "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
        "CPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 1\n"
    )
    assert hardware_module._identity(hardware_module._cpuinfo(path)) == {
        "vendor": "0x41",
        "family": "8",
        "model": "0xd0c",
        "stepping": "0x3.1",
    }


def test_a_windows_processor_is_identified_by_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "AMD64 Family 25 Model 33 Stepping 0, AuthenticAMD"
    monkeypatch.setattr("platform.processor", lambda: words)
    assert hardware_module._identity({}) == {
        "vendor": "AuthenticAMD",
        "family": "25",
        "model": "33",
        "stepping": "0",
    }


def test_a_system_that_says_nothing_is_still_a_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hardware_module, "_cpuinfo", dict)
    monkeypatch.setattr(hardware_module, "host_caches", lambda: host_caches(tmp_path))
    monkeypatch.setattr("platform.processor", lambda: "")
    facts = detect().facts
    assert [facts[name] for name in ("family", "model", "stepping", "l1d", "l2", "l3", "model_name")] == [
        None
    ] * 7
