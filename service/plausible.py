"""Times that a device cannot have measured become failures: nothing made up is best-known, and an honest
worker goes on. What people tell of a device is judged by what its workers have told of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from ..db.records import Job, Settlement
from ..db.store import Store
from .workloads import WorkloadParser


class Roofline:
    """Judges times by the least that the program can take on the device."""

    def __init__(self, store: Store, parser: WorkloadParser) -> None:
        self._store = store
        self._parser = parser

    def instead(self, lease: str, settlements: Sequence[Settlement]) -> dict[str, Settlement]:
        """What is stored in the place of results that are too fast, by their trials."""
        timed = [each for each in settlements if each.seconds is not None]
        if not timed:
            return {}
        of_trial = self._store.measured(lease, [each.trial for each in timed])
        found: dict[str, Settlement] = {}
        for each in timed:
            what = of_trial.get(each.trial)
            if what is None:
                continue  # the store says why it is not this lease's
            least = self._parser.least_seconds(what.program, what.description, what.facts)
            fastest = _fastest(each)
            if fastest < least:
                found[each.trial] = _refused(each, "the worker reports", fastest, least)
        return found

    def instead_of_told(self, job: Job, settlement: Settlement) -> Settlement | None:
        """What is stored in the place of a result of the job that was told from outside and is too fast.
        None for one that is not, and where no worker has told what the job's hardware is."""
        if settlement.seconds is None or job.hardware is None:
            return None
        facts = self._store.hardware(job.hardware).facts
        if not json.loads(facts):
            return None
        program = self._store.workload(job.workload).program
        least = self._parser.least_seconds(program, self._store.target(job.target).description, facts)
        fastest = _fastest(settlement)
        return _refused(settlement, "what is told is", fastest, least) if fastest < least else None


def _fastest(settlement: Settlement) -> float:
    """The least of all that a success says of its time."""
    return min([math.inf if settlement.seconds is None else settlement.seconds, *settlement.samples])


def _refused(settlement: Settlement, said: str, fastest: float, least: float) -> Settlement:
    """`run_error`: what ran there was not this program, or the clock is wrong."""
    return Settlement(
        trial=settlement.trial,
        attempt=settlement.attempt,
        failure_kind="run_error",
        failure_message=(
            f"{said} {fastest:.3g} s, but this device cannot do the work in less than "
            f"{least:.3g} s: its clock or its kernel is wrong"
        ),
        failure_detail=json.dumps({"limit": least, "elapsed": fastest}),
        build_seconds=settlement.build_seconds,
        wall_seconds=settlement.wall_seconds,
        codegen_version=settlement.codegen_version,
    )
