"""What a machine is, as far as it decides how fast a kernel runs, and what else is worth knowing about it."""

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import rfc8785

from .cpus import CPUS, Cpu
from .errors import TargetError
from .features import with_needs
from .host import architecture, host_caches, host_cpu

KEY_FIELDS = (
    "architecture",
    "vendor",
    "family",
    "model",
    "stepping",
    "features",
    "l1d",
    "l2",
    "l3",
    "accelerator",
)
"""The facts that form the hardware key. Everything else is stored beside it."""

_CPUINFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_PACKAGES = ("tilewright", "numpy", "llvmlite")


@dataclass(frozen=True, slots=True)
class Hardware:
    """A machine: its key, and the facts as plain JSON values, None where the machine does not say."""

    key: str
    facts: dict[str, Any]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """The machine that these facts describe."""
        identity = {name: facts.get(name) for name in KEY_FIELDS}
        return cls(sha256(rfc8785.dumps(identity)).hexdigest(), dict(facts))

    @property
    def cpu(self) -> Cpu:
        """The processor that "host" means on that machine. Raises TargetError when the facts name none."""
        known = CPUS.get(str(self.facts.get("mcpu")))
        if known is None:
            raise TargetError(f"mcpu=host: no code generator for the processor of hardware {self.key[:12]}")
        features = with_needs(known.architecture, self.facts.get("features") or known.features)
        l1d, l2, l3 = (self.facts.get(name) for name in ("l1d", "l2", "l3"))
        if l1d is None and l2 is None and l3 is None:
            return Cpu(known.name, known.architecture, features, known.l1d, known.l2, known.l3)
        return Cpu(known.name, known.architecture, features, l1d or known.l1d, l2 or known.l2, l3 or 0)


def detect() -> Hardware:
    """The machine this process runs on."""
    import psutil

    try:
        cpu: Cpu | None = host_cpu()
    except TargetError:  # a machine that no kernel can be built for can still be named
        cpu = None
    caches = host_caches()
    return Hardware.of(
        {
            "architecture": architecture(),
            **_identity(_cpuinfo()),
            "features": sorted(cpu.features) if cpu else None,
            "l1d": caches.l1d,
            "l2": caches.l2,
            "l3": caches.l3,
            "accelerator": None,
            "mcpu": cpu.name if cpu else None,
            "model_name": _model_name(),
            "microarchitecture": _microarchitecture(),
            "logical_cores": psutil.cpu_count(logical=True),
            "physical_cores": psutil.cpu_count(logical=False),
            "usable_cores": usable_cores(),
            "memory_bytes": psutil.virtual_memory().total,
            "governor": _line(_GOVERNOR),
            "os": platform.system(),
            "os_release": platform.release(),
            "python": platform.python_version(),
            "versions": {name: _version(name) for name in _PACKAGES},
        }
    )


def _identity(cpuinfo: Mapping[str, str]) -> dict[str, str | None]:
    """Vendor, family, model and stepping as the system writes them: numbers on x86, codes on ARM."""
    if "CPU implementer" in cpuinfo:
        stepping = f"{cpuinfo.get('CPU variant', '?')}.{cpuinfo.get('CPU revision', '?')}"
        return {
            "vendor": cpuinfo["CPU implementer"],
            "family": cpuinfo.get("CPU architecture"),
            "model": cpuinfo.get("CPU part"),
            "stepping": stepping,
        }
    if "vendor_id" in cpuinfo:
        return {
            "vendor": cpuinfo["vendor_id"],
            "family": cpuinfo.get("cpu family"),
            "model": cpuinfo.get("model"),
            "stepping": cpuinfo.get("stepping"),
        }
    # Windows: "AMD64 Family 25 Model 33 Stepping 0, AuthenticAMD"
    words = re.fullmatch(r".* Family (\d+) Model (\d+) Stepping (\d+)(?:, (\S+))?", platform.processor())
    if words is None:
        return {"vendor": _vendor(), "family": None, "model": None, "stepping": None}
    return {"vendor": words[4] or _vendor(), "family": words[1], "model": words[2], "stepping": words[3]}


def _cpuinfo(path: Path = _CPUINFO) -> dict[str, str]:
    """The first processor's lines of Linux's list; empty on other systems."""
    try:
        first = path.read_text(errors="replace").split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _model_name() -> str | None:
    return _cpuinfo().get("model name") or platform.processor() or None


def _vendor() -> str | None:
    import archspec.cpu

    vendor = archspec.cpu.host().vendor
    return None if vendor == "generic" else str(vendor)


def _microarchitecture() -> str:
    import archspec.cpu

    return str(archspec.cpu.host().name)


def usable_cores() -> int:
    """The logical cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _line(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
