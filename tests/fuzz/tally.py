"""What a fuzz run tried: counts, and whether they are enough to mean something."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

#: Of 20 000 schedules: how often each step must be applied and refused, each workload come, and the median
#: number of steps.
WHOLE = 20_000
APPLIED, REFUSED, WORKLOAD, MEDIAN = 200, 20, 100, 4


@dataclass(slots=True)
class Tally:
    """Sums over the schedules of a run."""

    applied: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    workloads: Counter[str] = field(default_factory=Counter)
    unbuilt: Counter[str] = field(default_factory=Counter)
    steps: list[int] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, told: dict[str, Any]) -> None:
        """Takes in what a worker told of one schedule."""
        self.applied.update(told["applied"])
        self.refused.update(told["refused"])
        self.workloads[told["workload"]] += 1
        self.steps.append(sum(told["applied"].values()))
        if "unbuilt" in told:
            self.unbuilt[told["unbuilt"].split(":", 1)[0]] += 1
        if "failure" in told:
            self.failures.append(told)

    @property
    def median(self) -> float:
        """Steps applied in the median schedule."""
        return statistics.median(self.steps) if self.steps else 0.0

    def lacking(self, steps: list[str], workloads: list[str]) -> list[str]:
        """What came too seldom for the number of schedules. A run shorter than the whole is asked for half of
        its share, since small counts scatter."""
        done = len(self.steps)
        share = min(1.0, done / WHOLE) * (1.0 if done >= WHOLE else 0.5)
        out = [
            f"{s} applied {self.applied[s]} times" for s in steps if self.applied[s] < int(APPLIED * share)
        ]
        out += [
            f"{s} refused {self.refused[s]} times" for s in steps if self.refused[s] < int(REFUSED * share)
        ]
        out += [
            f"{w!r} came {self.workloads[w]} times"
            for w in workloads
            if self.workloads[w] < int(WORKLOAD * share)
        ]
        if self.median < MEDIAN:
            out.append(f"the median schedule has {self.median} steps")
        return out

    def table(self, steps: list[str]) -> str:
        """Applied and refused steps, and what did not build, for people."""
        done = len(self.steps)
        lines = [f"{'step':28}{'applied':>9}{'refused':>9}"]
        lines += [f"{s:28}{self.applied[s]:>9}{self.refused[s]:>9}" for s in sorted(steps)]
        built = done - self.unbuilt.total()
        least = min(self.workloads.values(), default=0)
        lines.append(
            f"{done} schedules of {len(self.workloads)} workloads, each at least {least} times; "
            f"median {self.median:g} steps; {built} were built"
        )
        if self.unbuilt:
            reasons = ", ".join(f"{name} {n}" for name, n in self.unbuilt.most_common())
            lines.append(f"refused by the build: {reasons}")
        return "\n".join(lines)
