"""A file that a command makes: whole and on the disk, or not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ...db.disk_full import is_full
from ...db.errors import StoreError
from .exits import CommandError, Exit


@contextlib.contextmanager
def new_file(out: Path, mode: int = 0o666) -> Iterator[TextIO]:
    """Text for the new file `out` of an option --out; it is gone again where anything fails meanwhile.

    Raises CommandError where the file is there already, cannot be made, or the disk is full.
    """
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        code = Exit.FAILED if is_full(error) else Exit.USAGE
        raise CommandError(f"--out {out} cannot be made: {error.strerror}", code) from error
    file = os.fdopen(descriptor, "w", encoding="utf-8")
    try:
        yield file
        settle(file)
    except BaseException as error:
        # Half of it looks like the whole, and a file that is there would stop the next attempt.
        out.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            file.close()
        if is_full(error) and not isinstance(error, StoreError):
            raise CommandError(f"--out {out}: the disk is full; nothing was kept") from error
        raise
    file.close()


def settle(file: TextIO) -> None:
    """Have what was written on the disk; raises OSError where there is no room for it."""
    file.flush()
    os.fsync(file.fileno())
