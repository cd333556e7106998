"""What the processes of test_processes.py do: `python children.py NAME URL ARGUMENT…`, one answer a line."""

import sys

from tilewright.db import StoreError, open_store
from tilewright.db.fleet_records import NewWorker
from tilewright.db.records import NewTrial, Settlement


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
        worker = store.register_worker(NewWorker(name, "s", "h", 1, "{}", "{}", "g1"))
        sys.stdin.readline()
        while lease := store.claim(worker.id, "s", "h", 4, 30.0):
            for item in lease.items:
                store.start(lease.id, item.trial, item.attempt)
                seconds = 1.0 + item.number
                result = Settlement(item.trial, item.attempt, seconds, (seconds,), error=0.5)
                store.settle(lease.id, [result])
                print(item.trial, item.attempt, flush=True)


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
    {"first_start": first_start, "add_events": add_events, "measure": measure, "tune": tune}[name](*arguments)
