"""Two minutes of random schedules with a fresh seed, which is printed; `make fuzz` runs the long form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent / "run.py"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_random_schedules_of_many_workloads_are_refused_or_right(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "--seconds", "120"], capture_output=True, text=True, check=False
    )
    with capsys.disabled():
        # The seed is worth having of runs that pass, too.
        print(f"\n{done.stdout}", flush=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
