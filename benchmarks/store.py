"""How fast the store answers with few and with many trials in it, on both kinds of database.

    python benchmarks/store.py --trials 1000 1000000

Prints milliseconds for each call, and the ratio of the most trials to the fewest: on the clock (the median of
its repeats), and of the processor (their mean), that of this process and of the database's. The stores hold
what real use leaves (`bench.stored`). A store that answers by its indexes alone stays near 1; a call that
reads what it answers with (1 000 trials of a history) costs what that costs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from bench.store_work import Call, Work, lookups, round_of_a_worker
from bench.stored import fill, sizes
from sqlalchemy import select, text

from tilewright.db.sql.store import SqlStore
from tilewright.db.sql.tables import trials

sys.path.insert(0, str(Path(__file__).parents[1] / "deploy"))

REPEATS = 30
FEW, MANY = 10, 1_000
"""Jobs that wait at once."""


def rounds(store: SqlStore, work: Work, few: Work, many: Work) -> list[dict[str, Call]]:
    """What is timed. The calls of a round are made in turn; each round leaves as much work as it finds."""
    return [
        round_of_a_worker(work),
        {"claim of nothing": work.claim},
        {f"claim, {FEW} jobs wait": few.claim, "release": few.release},
        {f"claim, {MANY} jobs wait": many.claim, "release of it": many.release},
        *({name: call} for name, call in lookups(store).items()),
    ]


@dataclass(slots=True)
class Times:
    """Seconds of each repeat of a call."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


class Clock:
    """Times calls by this process and the database's own, those that serve it when this is made."""

    def __init__(self, store: SqlStore) -> None:
        with store._database.read() as conn:
            query = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
            of_server = conn.dialect.name == "postgresql"
            self._servers = list(conn.execute(query).scalars()) if of_server else []

    def time(self, call: Call, into: Times) -> None:
        used, begun = self._processor(), time.perf_counter()
        call()
        into.wall.append(time.perf_counter() - begun)
        into.processor.append(self._processor() - used)

    def _processor(self) -> float:
        return time.process_time() + sum(map(_used, self._servers))


def _used(process: int) -> float:
    """Seconds of the processor that another process has used (Linux: proc(5), schedstat)."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def filled(url: str, count: int) -> str:
    """The url, of a store that holds so many trials; one that holds any is taken to hold them."""
    with SqlStore.open(url) as store:
        with store._database.read() as conn:
            known = conn.execute(select(trials.c.id).limit(1)).first()
        if known is None:
            fill(store, sizes(count))
    return url


def measured(url: str, repeats: int = REPEATS) -> dict[str, Times]:
    times: defaultdict[str, Times] = defaultdict(Times)
    with SqlStore.open(url) as store, ExitStack() as stack:
        worked = {"h": 1, "few": FEW, "many": MANY}
        works = [stack.enter_context(Work(store, kind, count)) for kind, count in worked.items()]
        for calls in rounds(store, *works):
            for call in calls.values():
                call()
            clock = Clock(store)
            for _ in range(repeats):
                for name, call in calls.items():
                    clock.time(call, times[name])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    parser.add_argument("--folder", type=Path, help="keeps the filled stores for the next time")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--fill", action="store_true", help="fill the stores and time nothing")
    said = parser.parse_args()
    for kind in said.kinds:
        with ExitStack() as stack:
            folder = said.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder.mkdir(parents=True, exist_ok=True)
            if kind == "postgres":
                from postgres_server import PostgresServer

                place = None if said.folder is None else folder / "postgres"
                server = stack.enter_context(PostgresServer(durable=True, directory=place, autovacuum="on"))
                urls = [server.url(server.named(f"trials{count}")) for count in said.trials]
            else:
                urls = [f"sqlite:///{folder}/{count}.db" for count in said.trials]
            for url, count in zip(urls, said.trials, strict=True):
                filled(url, count)
            if not said.fill:
                show(kind, said.trials, [measured(url, said.repeats) for url in urls])


def show(kind: str, counts: list[int], tables: list[dict[str, Times]]) -> None:
    print(f"{kind}, {os.cpu_count()} processors; milliseconds with so many trials, and of the processor")
    of_processor = "".join(f"{count:>12}" for count in counts)
    print(f"{'':24}" + of_processor + f"{'ratio':>8}" + of_processor + f"{'ratio':>8}")
    for name in tables[0]:
        wall = [1e3 * median(table[name].wall) for table in tables]
        processor = [1e3 * mean(table[name].processor) for table in tables]
        print(f"{name:24}" + _line(wall) + _line(processor))
    print(flush=True)


def _line(values: list[float]) -> str:
    return "".join(f"{v:12.2f}" for v in values) + f"{values[-1] / values[0]:8.2f}"


if __name__ == "__main__":
    main()
