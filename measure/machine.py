"""How much memory there is to measure in."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_of_this_machine(cgroup: Path = _CGROUP) -> int:
    """Bytes of physical memory, or of the control group that this process is confined to."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = cgroup.read_text().strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical
