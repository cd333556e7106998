"""A small disk of one worker, which can be full."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

_MEGABYTES = 2
_FILLING = ".filling"


class SmallDisk:
    """A file system of 2 MiB at `folder`, where this user may mount one; `reason` says why there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reason = ""

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir(parents=True)
        if os.geteuid() != 0:
            self.reason = "mounting a small disk needs root"
            return self
        options = ("-t", "tmpfs", "-o", f"size={_MEGABYTES}m,mode=1777", "tmpfs", str(self.folder))
        try:
            done = subprocess.run(["mount", *options], capture_output=True, text=True)
            self.reason = "" if done.returncode == 0 else done.stderr.strip()
        except FileNotFoundError:
            self.reason = "there is no `mount` here"
        return self

    def __exit__(self, *_: object) -> None:
        if not self.reason:
            subprocess.run(["umount", str(self.folder)], check=True)

    def fill(self) -> None:
        """To the last byte."""
        with contextlib.suppress(OSError), (self.folder / _FILLING).open("ab", buffering=0) as file:
            while True:
                file.write(b"\0" * 4096)

    def free(self) -> None:
        (self.folder / _FILLING).unlink(missing_ok=True)
