"""Fresh processes that work on given processors and answer in JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def answer(program: str, seconds: float = 7200.0, path: str = "", **given: Any) -> dict[str, Any]:
    """The last line that a program of this folder prints, with `wall`: the seconds from its start to its end.
    `path` is put behind its module path. Raises RuntimeError with its last words where it fails."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(p for p in (environment.get("PYTHONPATH"), path) if p)
    given["since"] = begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{program}.py"), json.dumps(given)],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=environment,
    )
    wall = time.monotonic() - begun
    if done.returncode != 0:
        raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"wall": wall}
