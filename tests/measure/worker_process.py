"""A worker process for tests to signal: `python worker_process.py PROGRAM BEHAVIOUR…`, one lease of these.

It prints a line for each call of its source, and waits a minute for work once the lease is done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_source import HELLO, FakeSource

from tilewright.measure.messages import LeaseUpdate, Limits, MeasureInput, MeasureResult
from tilewright.measure.runner import Runner
from tilewright.measure.worker import run


class LoudSource(FakeSource):
    def _called(self, name: str, *arguments: str) -> None:
        print(name, *arguments, flush=True)
        super()._called(name, *arguments)

    def settle(self, lease: str, results: Sequence[MeasureResult]) -> LeaseUpdate:
        for result in results:
            print(result.item, result.failure.kind if result.failure else "succeeded", flush=True)
        return super().settle(lease, results)


def main(program: str, *behaviours: str) -> int:
    items = [
        MeasureInput(name, 1, {}, {}, {"behaviour": name, "seconds": 1.0}, 0, Limits(60.0, 60.0))
        for name in behaviours
    ]
    source = LoudSource([items] if items else [], when_empty=lambda: time.sleep(60))
    with Runner(program) as runner:
        return run(source, runner, HELLO)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
