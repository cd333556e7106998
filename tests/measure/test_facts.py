from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.compiler.target import Hardware, detect
from tilewright.measure.facts import facts_beside

NAMES = {
    "triple",
    "kernel",
    "container",
    "virtualised",
    "memory_limit_bytes",
    "processors_limit",
    "frequency_hz",
    "temperature_celsius",
}


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_every_fact_has_its_place_whatever_the_machine_says(tmp_path: Path) -> None:
    assert (set(facts_beside()), set(facts_beside(tmp_path))) == (NAMES, NAMES)


def test_none_of_these_facts_is_part_of_the_hardware_key() -> None:
    machine = detect()
    assert Hardware.of(machine.facts | facts_beside()).key == machine.key


@pytest.mark.parametrize(
    ("path", "text", "container"),
    [
        (".dockerenv", "", "docker"),
        ("run/.containerenv", "", "podman"),
        ("proc/self/cgroup", "0::/kubepods.slice/pod1", "kubepods"),
        ("proc/self/cgroup", "0::/user.slice", None),
    ],
)
def test_a_container_is_named(tmp_path: Path, path: str, text: str, container: str | None) -> None:
    write(tmp_path, path, text)
    assert facts_beside(tmp_path)["container"] == container


@pytest.mark.parametrize(
    ("flags", "vendor", "virtualised"),
    [("fpu", "QEMU", None), ("fpu hypervisor", "QEMU", "QEMU"), ("fpu hypervisor", None, "yes")],
)
def test_a_virtual_machine_is_named(
    tmp_path: Path, flags: str, vendor: str | None, virtualised: str | None
) -> None:
    write(tmp_path, "proc/cpuinfo", f"flags : {flags}\n")
    if vendor is not None:
        write(tmp_path, "sys/class/dmi/id/sys_vendor", vendor)
    assert facts_beside(tmp_path)["virtualised"] == virtualised


@pytest.mark.parametrize(
    ("path", "text", "limit"),
    [
        ("sys/fs/cgroup/memory.max", "1073741824\n", 1 << 30),
        ("sys/fs/cgroup/memory.max", "max\n", None),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n", 2 << 30),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", None),
    ],
)
def test_the_memory_of_a_control_group_is_told(
    tmp_path: Path, path: str, text: str, limit: int | None
) -> None:
    write(tmp_path, path, text)
    assert facts_beside(tmp_path)["memory_limit_bytes"] == limit


@pytest.mark.parametrize(("text", "limit"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None)])
def test_the_processors_of_a_control_group_are_told(tmp_path: Path, text: str, limit: float | None) -> None:
    write(tmp_path, "sys/fs/cgroup/cpu.max", text)
    assert facts_beside(tmp_path)["processors_limit"] == limit


def test_a_temperature_and_a_frequency_are_told_where_they_can_be_read(tmp_path: Path) -> None:
    write(tmp_path, "sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
    write(tmp_path, "sys/class/thermal/thermal_zone0/temp", "47500\n")
    for number in range(256):
        write(tmp_path, f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_cur_freq", "1800000\n")
    facts = facts_beside(tmp_path)
    assert (facts["temperature_celsius"], facts["frequency_hz"]) == (47.5, 1.8e9)
