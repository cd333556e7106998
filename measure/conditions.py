"""What may disturb a timing: the processor's frequency and temperature, throttling, a hypervisor, other work.

All of it is read from the system's files, where it has them; what it does not say disturbs nobody.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Conditions", "Look", "Sensors", "disturbance"]

SLOWER = 0.95
"""A processor whose frequency falls below so much of what it was is another one."""

_CPUS = "sys/devices/system/cpu"
_ZONES = "sys/class/thermal"
_THROTTLES = ("core_throttle_count", "package_throttle_count")
_CPU_ZONES = ("x86_pkg_temp", "cpu", "soc", "coretemp", "k10temp")
# What a thermal zone's trip points are called at which the system slows the processor down.
_HOT = ("passive", "hot")
# Of "cpuN user nice system idle iowait irq softirq steal …" (see proc(5)).
_STEAL_FIELD = 8


@dataclass(frozen=True, slots=True)
class Conditions:
    """A moment of one processor: its frequency in Hz, its temperature and the one at which it is slowed down
    in degrees Celsius, how often it was throttled and how many ticks a hypervisor took from it since it
    started, and how often a thread had to make room for others. None where that is not known."""

    frequency: float | None = None
    temperature: float | None = None
    hot: float | None = None
    throttled: int | None = None
    stolen: int | None = None
    interruptions: int | None = None


Look = Callable[[], Conditions]


def disturbance(before: Conditions, after: Conditions) -> str | None:
    """What disturbed the time between two moments, in words; None where nothing is known to have."""
    if _grew(before.throttled, after.throttled):
        return "the processor was throttled"
    if after.temperature is not None and after.hot is not None and after.temperature >= after.hot:
        return f"the processor is too hot: {after.temperature:g} °C, slowed down from {after.hot:g} °C"
    if before.frequency and after.frequency and after.frequency < SLOWER * before.frequency:
        return f"the frequency fell from {before.frequency / 1e6:.0f} to {after.frequency / 1e6:.0f} MHz"
    if _grew(before.stolen, after.stolen):
        return "the hypervisor took the processor away"
    if _grew(before.interruptions, after.interruptions):
        return "other work interrupted it"
    return None


def _grew(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before


class Sensors:
    """Reads the conditions of the processor that the calling thread runs on. `root` is where the system's
    files are. What there is to read is found once, so that a look costs some microseconds."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._processor = _current_processor()
        cpus = root / _CPUS
        self._frequencies = {_number(p): p for p in cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")}
        self._throttles = {
            _number(folder): [folder / name for name in _THROTTLES if (folder / name).exists()]
            for folder in cpus.glob("cpu[0-9]*/thermal_throttle")
        }
        self._zone = _cpu_zone(root / _ZONES)
        self._hot = None if self._zone is None else _hot(self._zone)
        self._stat = root / "proc/stat" if _has_hypervisor(root / "proc/cpuinfo") else None

    def look(self, is_parallel: bool = False) -> Conditions:
        """As it is now. The interruptions are those of the calling thread, or of all threads."""
        number = self._processor()
        counts = [_integer(path) for path in self._throttles.get(number, ())]
        known = [count for count in counts if count is not None]
        frequency = _integer(self._frequencies.get(number))
        temperature = None if self._zone is None else _integer(self._zone / "temp")
        return Conditions(
            frequency=None if frequency is None else frequency * 1e3,
            temperature=None if temperature is None else temperature / 1e3,
            hot=self._hot,
            throttled=sum(known) if known else None,
            stolen=None if self._stat is None else _stolen(self._stat, number),
            interruptions=_interruptions(is_parallel),
        )


def _interruptions(is_parallel: bool) -> int:
    """How often the system took a core from this thread, or from one of this process's threads."""
    of_thread = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(resource.RUSAGE_SELF if is_parallel else of_thread).ru_nivcsw


def _current_processor() -> Callable[[], int]:
    if sys.platform != "linux":
        return lambda: 0
    return ctypes.CDLL(None).sched_getcpu


def _cpu_zone(zones: Path) -> Path | None:
    """The first thermal zone that is a processor's."""
    for zone in sorted(zones.glob("thermal_zone*")):
        if (_text(zone / "type") or "").startswith(_CPU_ZONES) and _integer(zone / "temp") is not None:
            return zone
    return None


def _hot(zone: Path) -> float | None:
    """The least temperature at which the processor of this zone is slowed down."""
    limits = [
        limit
        for kind in zone.glob("trip_point_*_type")
        if _text(kind) in _HOT
        and (limit := _integer(kind.with_name(kind.name.replace("_type", "_temp")))) is not None
        and limit > 0
    ]
    return min(limits) / 1e3 if limits else None


def _has_hypervisor(cpuinfo: Path) -> bool:
    return "hypervisor" in (_text(cpuinfo) or "").partition("\n\n")[0].split()


def _stolen(stat: Path, processor: int) -> int | None:
    for line in (_text(stat) or "").splitlines():
        words = line.split()
        if words and words[0] == f"cpu{processor}" and len(words) > _STEAL_FIELD:
            return int(words[_STEAL_FIELD])
    return None


def _number(path: Path) -> int:
    """The number of the processor that a path is about."""
    name = next(part for part in reversed(path.parts) if part.startswith("cpu") and part[3:].isdigit())
    return int(name[3:])


def _integer(path: Path | None) -> int | None:
    text = None if path is None else _text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
