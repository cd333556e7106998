"""Kernel Tuner's strategies on a recorded space, in an interpreter that has it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tilewright.tuner.recorded import RecordedSpace

from .replaying import Curves

__all__ = ["KernelTunerRun", "kernel_tuner"]

PROGRAM = Path(__file__).with_name("kernel_tuner_program.py")


@dataclass(frozen=True)
class KernelTunerRun:
    """For each strategy, by budget, its curves; and the strategies that cannot run, with the reason."""

    version: str
    curves: dict[str, dict[int, Curves]]
    missing: dict[str, str] = field(default_factory=dict)

    def best_at(self, strategy: str, evaluations: int) -> Curves:
        """The curves of the smallest budget that has so many evaluations: a strategy that plans by its budget
        had this one to plan with."""
        budget = min(budget for budget in self.curves[strategy] if budget >= evaluations)
        return self.curves[strategy][budget]


def kernel_tuner(
    python: str, space: RecordedSpace, seeds: Sequence[int], budgets: Sequence[int]
) -> KernelTunerRun:
    """Every strategy on the space. Raises RuntimeError with what the program wrote where it fails."""
    request = {
        "params": [knob.name for knob in space.columns.knobs],
        "configs": space.configs.tolist(),
        "time_ms": [None if np.isnan(s) else s * 1e3 for s in space.seconds.tolist()],
        "seeds": list(seeds),
        "budgets": list(budgets),
        "strategies": None,
    }
    done = subprocess.run(
        [python, str(PROGRAM)], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{python} could not run Kernel Tuner:\n{done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    found = answer["strategies"]
    return KernelTunerRun(
        answer["version"],
        {
            name: {int(budget): curves for budget, curves in one["best"].items()}
            for name, one in found.items()
            if "best" in one
        },
        {name: one["missing"] for name, one in found.items() if "missing" in one},
    )
