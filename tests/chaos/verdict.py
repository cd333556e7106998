"""What must hold at the end, each as a function from what is there to complaints."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from evidence import Evidence, Row
from ledger import Ledger

from tilewright.db.sql.digest import digest_of
from tilewright.measure.messages import MeasureResult
from tilewright.service.lease_calls import settlement

_FINAL = ("completed", "exhausted", "cancelled", "failed")
_FAULTS_EXPLAIN = (
    # A search that was killed again and again without a result in between.
    r"its search ended (by signal 9|with its runner), \d+ times: .*",
    # A reference that was killed or stood still for two candidates in a row.
    r"no candidate can be measured: .*",
    # So few trials that each of them was hit.
    r"none of \d+ trials gave a time \(.*",
)
"""Reasons for which a job may have failed."""


def complaints(evidence: Evidence, ledger: Ledger, seeds: set[int]) -> list[str]:
    """All of them; none is a run that lost nothing. `seeds`: those that were submitted, each at most once."""
    return [
        *ledger.odd,
        *_submissions(evidence, ledger, seeds),
        *_settlements(evidence, ledger),
        *_settled_twice(evidence, ledger),
        *_ends(evidence, ledger),
        *_leftovers(evidence),
        *_event_gaps(evidence),
        *_bests(evidence),
    ]


def _submissions(evidence: Evidence, ledger: Ledger, seeds: set[int]) -> Iterator[str]:
    there = {job["id"] for job in evidence.jobs}
    for key, job in ledger.jobs.items():
        if job not in there:
            yield f"job {job} of key {key} was acknowledged and is not there"
    by_seed: dict[int, list[str]] = defaultdict(list)
    for job in evidence.jobs:
        by_seed[job["seed"]].append(job["id"])
    for seed, jobs in by_seed.items():
        if len(jobs) > 1:
            yield f"one submission made the jobs {', '.join(jobs)}"
        if seed not in seeds:
            yield f"job {jobs[0]} was never submitted"


def _settlements(evidence: Evidence, ledger: Ledger) -> Iterator[str]:
    there = {(row["trial"], row["attempt"]): row for row in evidence.attempts}
    for (trial, attempt), said in ledger.settled.items():
        row = there.get((trial, attempt))
        if row is None or row["state"] != "settled":
            state = "not there" if row is None else row["state"]
            yield f"attempt {attempt} of trial {trial} was acknowledged as settled and is {state}"
        elif row["digest"] != (digest := digest_of(settlement(MeasureResult.from_json(said)))):
            yield f"attempt {attempt} of trial {trial} was acknowledged as {digest} and is {row['digest']}"
    times: dict[str, set[float]] = defaultdict(set)
    unseen = {
        row["trial"] for key, row in there.items() if row["state"] == "settled" and key not in ledger.settled
    }
    for (trial, _), said in ledger.settled.items():
        if said["seconds"] is not None:
            times[trial].add(said["seconds"])
    for trial in evidence.trials:
        first = trial["seconds"] if trial["first_seconds"] is None else trial["first_seconds"]
        if first is not None and trial["id"] not in unseen and first not in times[trial["id"]]:
            yield f"trial {trial['id']} has {first} s, which no worker has reported"


def _settled_twice(evidence: Evidence, ledger: Ledger) -> Iterator[str]:
    """A result that blames the worker is not the trial's; a trial of final rounds is timed again."""
    again = {row["trial"] for row in evidence.retimings}
    counted: dict[str, int] = defaultdict(int)
    for row in evidence.attempts:
        said = ledger.settled.get((row["trial"], row["attempt"]))
        fault = said is None or (said["failure"] or {}).get("kind") == "worker_lost"
        if row["state"] == "settled" and row["trial"] not in again and not fault:
            counted[row["trial"]] += 1
    for trial, count in counted.items():
        if count > 1:
            yield f"trial {trial} was settled {count} times"


def _ends(evidence: Evidence, ledger: Ledger) -> Iterator[str]:
    for job in evidence.jobs:
        state, reason = job["state"], job["reason"]
        if state not in _FINAL:
            yield f"job {job['id']} did not end: {state}, {reason!r}, {job['done']} of {job['trials']} trials"
        elif state == "failed" and not any(re.fullmatch(known, reason) for known in _FAULTS_EXPLAIN):
            yield f"job {job['id']} failed for a reason that no fault explains: {reason}"
        elif state == "completed" and job["done"] < job["trials"] and not reason:
            yield f"job {job['id']} has {job['done']} of {job['trials']} trials and says no reason"
        if job["id"] in ledger.cancelled and state != "cancelled":
            yield f"job {job['id']} was acknowledged as cancelled and is {state}"


def _leftovers(evidence: Evidence) -> Iterator[str]:
    for lease in evidence.leases:
        if lease["closed_at"] is None:
            yield f"lease {lease['id']} is still open"
    for row in evidence.attempts:
        if row["state"] in ("granted", "started", "ran"):
            yield f"attempt {row['attempt']} of trial {row['trial']} is still {row['state']}"
    for trial in evidence.trials:
        if trial["outcome"] in ("pending", "started") or trial["lease"] is not None:
            yield f"trial {trial['id']} is still {trial['outcome']}, lease {trial['lease']}"
    for worker in evidence.workers:
        if worker["state"] != "offline":
            yield f"worker {worker['name']} is {worker['state']} after it has left: {worker['reason']}"
    if evidence.queued:
        yield f"{evidence.queued} searches are left in the queue"


def _event_gaps(evidence: Evidence) -> Iterator[str]:
    by_job: dict[str, list[Row]] = defaultdict(list)
    for event in evidence.events:
        by_job[event["job"]].append(event)
    for job in evidence.jobs:
        told = sorted(by_job[job["id"]], key=lambda event: int(event["seq"]))
        numbers = [event["seq"] for event in told]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"the events of job {job['id']} are numbered {numbers}"
        states = [json.loads(event["data"])["state"] for event in told if event["kind"] == "state"]
        if not states or states[-1] != job["state"]:
            yield f"the events of job {job['id']} tell of the states {states}; it is {job['state']}"


def _bests(evidence: Evidence) -> Iterator[str]:
    """The least believed time stands, unless what reads faster was timed against it, or waits for that."""
    jobs = {job["id"]: job for job in evidence.jobs}
    trials = {trial["id"]: trial for trial in evidence.trials}
    standing = {_key(row): row for row in evidence.schedules}
    # What was timed in turn is a schedule, whichever trial of it was named.
    timed = {
        (trials[row["trial"]]["candidate_key"], _key(jobs[trials[row["trial"]]["job"]]))
        for row in evidence.retimings
        if row["outcome"] not in ("pending", "cancelled")
    }
    duelled = {
        job for duel in evidence.duels for job in (duel["job"], *map(_job_of, json.loads(duel["times"])))
    }
    # Of a job that had final rounds only their winner is set against another job's.
    winners = {trial["job"]: trial["id"] for trial in evidence.trials if trial["first_seconds"] is not None}
    for key in {_key(jobs[trial["job"]]) for trial in _servable(evidence)} - standing.keys():
        yield f"there is a checked trial for {key} and no best-known schedule"
    for key, row in standing.items():
        best = trials[row["trial"]]
        if best["outcome"] != "ok" or best["error"] is None or _key(jobs[best["job"]]) != key:
            yield f"the best-known schedule of {key} is trial {best['id']}, which may not be"
            continue
        # The least of one timing; the median of those of the final rounds.
        of_samples = min if best["first_seconds"] is None else median
        if not math.isclose(row["seconds"], of_samples(json.loads(best["samples"])), rel_tol=1e-9):
            yield f"the best-known schedule of {key} has {row['seconds']} s, and its samples have not"
        for rival in _servable(evidence):
            if _key(jobs[rival["job"]]) != key or rival["seconds"] >= row["seconds"]:
                continue
            if rival["job"] == best["job"]:
                decided = best["first_seconds"] is not None
            else:
                waits = row["challenger"] is not None and row["challenger_seconds"] <= rival["seconds"]
                decided = waits or (rival["candidate_key"], key) in timed or rival["job"] in duelled
                decided = decided or winners.get(rival["job"], rival["id"]) != rival["id"]
            if not decided and rival["candidate_key"] != best["candidate_key"]:
                yield (
                    f"the best-known schedule of {key} has {row['seconds']} s, and trial {rival['id']} has "
                    f"{rival['seconds']} s"
                )


def _servable(evidence: Evidence) -> list[Row]:
    jobs = {job["id"]: job for job in evidence.jobs}
    retired = {(row["candidate_key"], row["hardware"]) for row in evidence.retirements}
    return [
        trial
        for trial in evidence.trials
        if trial["outcome"] == "ok"
        and trial["error"] is not None
        and trial["codegen_version"] is not None
        and (trial["candidate_key"], jobs[trial["job"]]["hardware"]) not in retired
    ]


def _key(row: Row) -> tuple[str, str, str]:
    return row["workload"], row["target"], row["hardware"]


def _job_of(trial: str) -> str:
    return trial.rpartition(".")[0]
