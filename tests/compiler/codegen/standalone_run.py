"""Runs programs of their own by hand, natively or under QEMU, and reads what they say."""

from __future__ import annotations

import platform
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LIMIT_SECONDS = 60
QEMU = {
    "x86_64": ("-cpu", "max"),
    "aarch64": ("-cpu", "max"),
    "riscv64": ("-cpu", "rv64,v=true,vlen=512,vext_spec=v1.0,Zfh=true"),
}


def emulator(architecture: str) -> list[str] | None:
    """What runs programs of an architecture here; None where nothing does."""
    if sys.platform == "linux" and platform.machine() == architecture:
        return []
    found = shutil.which(f"qemu-{architecture}-static")
    return None if found is None else [found, *QEMU[architecture]]


@dataclass(frozen=True)
class Said:
    """What a program said, word by word, and how it ended."""

    status: int
    first: int = 0
    worst: float = 0.0
    bad: int = 0
    output: int = 0
    index: int = 0
    got: float = 0.0
    want: float = 0.0
    tolerance: float = 0.0
    samples: tuple[int, ...] = ()
    wrote: int = -2
    differs: int = -2


def run(program: bytes, data: Path, runs: list[str], folder: Path, calls: tuple[int, ...] = (1, 3)) -> Said:
    path = folder / "program"
    path.write_bytes(program)
    path.chmod(0o755)
    said = struct.pack(f"<{len(calls) + 2}q", 0, *calls, 0)
    command = ["sh", "-c", 'exec 3<"$1"; shift; exec "$@"', "sh", str(data), *runs, str(path)]
    done = subprocess.run(command, input=said, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode:
        return Said(done.returncode)
    form = f"<qdqqqddd{len(calls)}qqq"
    assert len(done.stdout) == struct.calcsize(form), done.stdout
    first, worst, bad, output, index, got, want, tolerance, *rest = struct.unpack(form, done.stdout)
    return Said(0, first, worst, bad, output, index, got, want, tolerance, tuple(rest[:-2]), *rest[-2:])


def write(path: Path, parts: list[tuple[int, bytes]], size: int) -> Path:
    """A file with these bytes at these offsets."""
    with path.open("wb") as file:
        for offset, data in parts:
            file.seek(offset)
            file.write(data)
        file.truncate(size)
    return path


__all__ = ["Said", "emulator", "run", "write"]
