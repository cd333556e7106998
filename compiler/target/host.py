"""The processor this process runs on, by LLVM's names. The only place of the target that asks the machine."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .cpus import ALIASES, CPUS, Cpu, nearest
from .errors import TargetError
from .features import ARCHITECTURES, known_features

_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Caches:
    """Data cache sizes in bytes; None where the machine does not say."""

    l1d: int | None = None
    l2: int | None = None
    l3: int | None = None


def architecture() -> str:
    """The machine's architecture by the names this package uses, or the machine's own word for it."""
    machine = platform.machine().lower()
    return _MACHINES.get(machine, machine)


@lru_cache(maxsize=1)
def host_cpu() -> Cpu:
    """The processor of this machine, with the features that its operating system allows.

    A processor that the table does not know is described by the nearest general one. Raises TargetError on an
    architecture with no code generator.
    """
    arch = architecture()
    if arch not in ARCHITECTURES:
        raise TargetError(
            f"mcpu=host: no code generator for {arch!r}; known architectures: {', '.join(ARCHITECTURES)}"
        )
    import llvmlite.binding as llvm

    try:
        reported: Mapping[str, bool] = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not say on some systems
        reported = {}
    name = llvm.get_host_cpu_name()
    name = ALIASES.get(name, name)
    features = frozenset(f for f in known_features(arch) if reported.get(f))
    known = CPUS.get(name)
    if known is None or known.architecture != arch:
        known = nearest(arch, features)
    caches = host_caches()
    return Cpu(
        known.name,
        arch,
        features or known.features,
        caches.l1d or known.l1d,
        caches.l2 or known.l2,
        known.l3 if caches == Caches() else caches.l3 or 0,
    )


def host_caches(folder: Path = _CACHES) -> Caches:
    """Sizes of the first core's caches as Linux lists them; empty where it lists none."""
    sizes: dict[str, int] = {}
    for index in sorted(folder.glob("index*")):
        level, kind, size = (_word(index / name) for name in ("level", "type", "size"))
        if level and size and kind in ("Data", "Unified"):
            sizes[level] = _bytes(size)
    return Caches(sizes.get("1"), sizes.get("2"), sizes.get("3"))


def _word(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _bytes(size: str) -> int:
    unit = _UNITS.get(size[-1:], 1)
    return int(size.rstrip("KMG")) * unit
