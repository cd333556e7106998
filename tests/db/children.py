"""What the processes of test_processes.py do: `python children.py NAME URL ARGUMENT…`, one answer a line."""

import sys
import time

from tilewright.db import Store, StoreError, open_store
from tilewright.db.fleet_records import NewWorker
from tilewright.db.records import NewJob, NewTrial, Settlement


def first_start(template: str) -> None:
    """For each round named on standard input, open the database of that round."""
    for line in sys.stdin:
        try:
            with open_store(template.format(line.strip())) as store:
                print(store.schema_version(), flush=True)
        except StoreError as e:
            print(repr(e), flush=True)


def add_events(url: str, job: str, count: str) -> None:
    with open_store(url) as store:
        sys.stdin.readline()
        for _ in range(int(count)):
            print(store.add_event(job, "note", "{}"), flush=True)


def measure(url: str, name: str) -> None:
    """Claim, start and settle until nothing is left; prints trial and attempt of what was acknowledged."""
    with open_store(url) as store:
        worker = store.register_worker(NewWorker(name, "s", "h", 1, "{}", "{}", "g1")).id
        sys.stdin.readline()
        while measure_some(store, worker):
            pass


def measure_some(store: Store, worker: str) -> bool:
    """One lease; False where nothing waits."""
    lease = store.claim(worker, "s", "h", 4, 60.0)
    for item in lease.items if lease else ():
        store.start(lease.id, item.trial, item.attempt)
        store.renew(lease.id, 60.0)
        seconds = 1.0 + item.number
        result = Settlement(item.trial, item.attempt, seconds, (seconds,), error=0.5)
        store.settle(lease.id, [result])
        print(item.trial, item.attempt, flush=True)
    return lease is not None


def read_all(url: str, job: str, count: str) -> None:
    """Read what a page of the job shows, until so many of its trials are done; prints how often."""
    with open_store(url) as store:
        sys.stdin.readline()
        reads = 0
        while store.job(job).done < int(count):
            store.trials(job)
            store.trial_counts(job)
            store.top_trials(job, 10)
            store.events(job, after=0)
            store.best("w", "t", "h")
            store.workers()
            reads += 1
        print(reads)


def search_and_measure(url: str, name: str, count: str, of_all: str) -> None:
    """Add so many trials to a job of its own, one at a time, and measure whosever, until all of all processes
    are done; prints trial and attempt of what was acknowledged."""
    with open_store(url) as store:
        worker = store.register_worker(NewWorker(name, "s", "h", 1, "{}", "{}", "g1")).id
        sys.stdin.readline()
        job = store.create_job(NewJob("w", "t", "h", int(count), None, 0, "guided", 600.0, "http", "{}")).id
        epoch = store.begin_search(job)
        for n in range(int(count)):
            store.add_trials(job, epoch, [NewTrial(n, n, f"c{n}", "tiled", "{}", b"", 1, 0)])
            if n % 4 == 3:
                measure_some(store, worker)
        while sum(job.done for job in store.jobs().items) < int(of_all):
            if not measure_some(store, worker):
                time.sleep(0.05)


def add_same(url: str, job: str, count: str) -> None:
    """Add trials that others add as well; prints the ids that each got."""
    with open_store(url) as store:
        sys.stdin.readline()
        for n in range(int(count)):
            (trial,) = store.add_trials(job, 1, [NewTrial(n, n // 8, f"c{n}", "tiled", "{}", b"", 1, 0)])
            print(trial.id, flush=True)


def tune(url: str, job: str) -> None:
    """Add trials and settle them, two at a time, until killed; prints each number that was acknowledged."""
    with open_store(url) as store:
        epoch = store.begin_search(job)
        number = len(store.trials(job, limit=10_000))
        while True:
            numbers = range(number, number + 2)
            trials = [NewTrial(n, n // 2, f"c{n}", "tiled", "{}", b"", 1, 0) for n in numbers]
            store.add_trials(job, epoch, trials)
            for n in numbers:
                seconds = 2.0 / (1 + n)
                result = Settlement(seconds=seconds, samples=(seconds,), error=0.5, codegen_version="g1")
                store.settle_local(job, epoch, n, result)
                print(n, flush=True)
            number += 2


if __name__ == "__main__":
    _, name, *arguments = sys.argv
    globals()[name](*arguments)
