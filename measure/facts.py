"""What else is worth knowing of a machine, beside what decides how fast a kernel runs: nothing of it is in
the hardware key, and what the machine does not say is None."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

from .conditions import Sensors

__all__ = ["facts_beside", "llvm_version"]

_CONTAINERS = {".dockerenv": "docker", "run/.containerenv": "podman"}
_CGROUP_WORDS = ("kubepods", "docker", "libpod", "lxc", "containerd")
_MACHINES = ("sys/class/dmi/id/sys_vendor", "sys/hypervisor/type")


def facts_beside(root: Path = Path("/")) -> dict[str, Any]:
    """Facts as plain JSON values. `root` is where the system's files are."""
    look = Sensors(root).look()
    return {
        "triple": _triple(),
        "kernel": platform.version() or None,
        "container": _container(root),
        "virtualised": _hypervisor(root),
        "memory_limit_bytes": _memory_limit(root),
        "processors_limit": _processors_limit(root),
        "frequency_hz": look.frequency,
        "temperature_celsius": look.temperature,
    }


def llvm_version() -> str:
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))


def _triple() -> str:
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


def _container(root: Path) -> str | None:
    """Which kind of container this is, if any."""
    for path, name in _CONTAINERS.items():
        if (root / path).exists():
            return name
    said = _text(root / "proc/self/cgroup") or ""
    return next((word for word in _CGROUP_WORDS if word in said), None)


def _hypervisor(root: Path) -> str | None:
    """Whose virtual machine this is; "yes" where that is all that is known."""
    first = (_text(root / "proc/cpuinfo") or "").partition("\n\n")[0]
    if "hypervisor" not in first.split():
        return None
    return next((said for path in _MACHINES if (said := _text(root / path))), "yes")


def _memory_limit(root: Path) -> int | None:
    """Bytes that the control group may use, of version 2 or 1."""
    for path in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        said = _text(root / path)
        if said and said.isdigit() and int(said) < 1 << 60:  # version 1 writes a number for no limit
            return int(said)
    return None


def _processors_limit(root: Path) -> float | None:
    """Processors' worth of time that the control group may use."""
    said = _text(root / "sys/fs/cgroup/cpu.max") or ""
    match = re.fullmatch(r"(\d+) (\d+)", said)
    return int(match[1]) / int(match[2]) if match and int(match[2]) else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
