from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.measure.conditions import Conditions, Sensors, disturbance

CPU = "sys/devices/system/cpu/cpu{}"


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a system with every sensor, alike for the first 256 processors."""
    stat = ["cpu  1 1 1 1 1 1 1 1 0 0"]
    for number in range(256):
        cpu = CPU.format(number)
        write(tmp_path, f"{cpu}/cpufreq/scaling_cur_freq", "2400000\n")
        write(tmp_path, f"{cpu}/thermal_throttle/core_throttle_count", "2\n")
        write(tmp_path, f"{cpu}/thermal_throttle/package_throttle_count", "5\n")
        stat.append(f"cpu{number} 9 9 9 9 9 9 9 77 0 0")
    write(tmp_path, "proc/stat", "\n".join(stat))
    write(tmp_path, "proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse2\n\nprocessor : 1\n")
    zones = "sys/class/thermal/thermal_zone{}/{}"
    write(tmp_path, zones.format(0, "type"), "acpitz\n")
    write(tmp_path, zones.format(0, "temp"), "99000\n")
    write(tmp_path, zones.format(1, "type"), "cpu-thermal\n")
    write(tmp_path, zones.format(1, "temp"), "61500\n")
    write(tmp_path, zones.format(1, "trip_point_0_type"), "critical\n")
    write(tmp_path, zones.format(1, "trip_point_0_temp"), "70000\n")
    write(tmp_path, zones.format(1, "trip_point_1_type"), "passive\n")
    write(tmp_path, zones.format(1, "trip_point_1_temp"), "80000\n")
    return tmp_path


def test_every_sensor_of_the_system_is_read(root: Path) -> None:
    look = Sensors(root).look()
    assert look == Conditions(2.4e9, 61.5, 80.0, 7, 77, look.interruptions)
    assert look.interruptions is not None


def test_a_system_without_sensors_knows_of_interruptions_alone(tmp_path: Path) -> None:
    look = Sensors(tmp_path).look()
    assert look == Conditions(interruptions=look.interruptions)


def test_time_is_not_stolen_where_there_is_no_hypervisor(root: Path) -> None:
    write(root, "proc/cpuinfo", "flags : fpu sse2\n")
    assert Sensors(root).look().stolen is None


@pytest.mark.parametrize("text", ["", "lots", "-", "1e3"])
def test_a_sensor_that_writes_no_number_is_none(root: Path, text: str) -> None:
    sensors = Sensors(root)
    for path in root.glob("sys/devices/system/cpu/cpu*/*/*"):
        path.write_text(text)
    look = sensors.look()
    assert (look.frequency, look.throttled) == (None, None)


QUIET = Conditions(2.4e9, 60.0, 80.0, 7, 77, 5)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (QUIET, None),
        (Conditions(2.3e9, 79.9, 80.0, 7, 77, 5), None),
        (Conditions(throttled=8), "the processor was throttled"),
        (
            Conditions(temperature=80.0, hot=80.0),
            "the processor is too hot: 80 °C, slowed down from 80 °C",
        ),
        (Conditions(1.8e9), "the frequency fell from 2400 to 1800 MHz"),
        (Conditions(stolen=78), "the hypervisor took the processor away"),
        (Conditions(interruptions=6), "other work interrupted it"),
        (Conditions(), None),
    ],
)
def test_what_disturbs_a_timing_is_named(after: Conditions, words: str | None) -> None:
    assert disturbance(QUIET, after) == words


def test_what_was_not_known_before_disturbs_nobody() -> None:
    assert disturbance(Conditions(), Conditions(1e9, 60.0, 80.0, 9, 99, 9)) is None
