"""Mutants of programs: refused with a VerifyError, or they stay within their arrays when they run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from service_harness import ENVIRONMENT

PROGRAM = Path(__file__).parent / "fuzz_programs.py"


def fuzzed(seed: int, count: int, seconds: float) -> dict[str, int]:
    command = [sys.executable, str(PROGRAM), str(seed), str(count), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=seconds + 120)
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    told: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_mutants_that_are_taken_stay_within_their_arrays() -> None:
    assert fuzzed(1, 25, 30)["ran"] >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_mutants_that_are_taken_stay_within_their_arrays(seed: int) -> None:
    assert fuzzed(100 + seed, 100_000, 60)["ran"] >= 100
