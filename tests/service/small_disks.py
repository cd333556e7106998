"""Disks that are full, for tests that may mount one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Mounted = Callable[..., Path]


def ballast(place: Path, room: int) -> Path:
    """Fill a small disk but for so many bytes; the file."""
    file = place / "ballast"
    free = os.statvfs(place)
    file.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room)))
    return file


@contextlib.contextmanager
def mounting() -> Iterator[Mounted]:
    """Mounts a disk of so many MB, which is gone at the end."""
    with contextlib.ExitStack() as stack:

        def mounted(place: Path, megabytes: int) -> Path:
            place.mkdir()
            options = f"size={megabytes}m,mode=777"
            mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
            if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
                pytest.skip("a disk of its own needs the right to mount one")
            stack.callback(subprocess.run, ["umount", str(place)], check=True)
            return place

        yield mounted
