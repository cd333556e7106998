"""Everything that a deployment has, on this machine, and a supervisor that starts again what has ended."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from disk import SmallDisk
from ledger import Ledger
from part import Part, environment, send
from proxy import Proxy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "deploy"))

from postgres_server import PostgresServer  # noqa: E402

Form = Literal["scaled", "embedded"]
_SOURCE = HERE.parents[1] / "src"
_START_SECONDS = 90.0
_LOOK_EVERY = 0.1
_RECOVERY_SECONDS = 20.0
_END_SECONDS = 60.0
#: Shorter than the defaults, so that minutes show what else takes hours.
_SETTINGS = {
    "TILEWRIGHT_LEASE_SECONDS": "6",
    "TILEWRIGHT_RENEW_SECONDS": "2",
    "TILEWRIGHT_LEASE_WAIT": "4",
    "TILEWRIGHT_RUNNER_SILENCE": "4",
    "TILEWRIGHT_RUN_SECONDS": "6",
    # Nothing here is steady, and this is not about that.
    "TILEWRIGHT_GOLDEN_PROCESSES": "0",
    "TILEWRIGHT_GOLDEN_EVERY": "0",
}


class Stand:
    """A context: the scaled form on PostgreSQL, or the embedded one on SQLite; two workers behind a `proxy`.

    `ended` tells of parts that ended though nothing was done to them, and to nothing that they need.
    """

    def __init__(self, form: Form, folder: Path, seed: int, say: Callable[[str], None]) -> None:
        self.form = form
        self.folder = folder
        self.ledger = Ledger()
        self.proxy = Proxy(self.ledger, seed)
        self.disk = SmallDisk(folder / "worker-1")
        self.postgres: PostgresServer | None = None
        self.parts: dict[str, Part] = {}
        self.ended: list[str] = []
        self.db = f"sqlite:///{folder}/chaos.db"
        self._database_away_until = -math.inf
        self._say = say
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._stack = contextlib.ExitStack()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        self._port = _free_port()
        self._lock = threading.RLock()

    @property
    def workers(self) -> list[Part]:
        return [part for name, part in self.parts.items() if name.startswith("worker")]

    @property
    def apis(self) -> list[Part]:
        return [self.parts["api"]]

    @property
    def searchers(self) -> list[Part]:
        """Whose children search."""
        return [part for name, part in self.parts.items() if name.startswith("search")] or self.apis

    def clock(self, worker: Part) -> Path:
        return self.folder / f"{worker.name}.clock"

    def __enter__(self) -> Stand:
        self.folder.chmod(0o711)
        try:
            self._stack.enter_context(self.disk)
            if self.form == "scaled":
                self._begin_postgres()
            self._run("db", "upgrade")
            for scope, name in (("jobs:write", "client"), ("worker", "worker")):
                self._run("token", "create", "--scope", scope, "--out", str(self.folder / f"{name}.token"))
            self._stack.enter_context(self.proxy)
            self.proxy.upstream = self._port
            self._add_all()
            self._supervisor.start()
            self._wait_for("the API", self._answers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for part in self.parts.values():
            for each in reversed(part.tree()):
                send(each, signal.SIGKILL)
            if part.process is not None:
                part.process.wait()
        self._stack.close()

    @property
    def client_token(self) -> str:
        return (self.folder / "client.token").read_text().strip()

    def calm(self) -> None:
        """No fault is left."""
        self.proxy.set("calm")
        self.disk.free()
        if self.postgres is not None:
            self.postgres.go_on()
        for part in self.parts.values():
            part.go_on()

    def end(self) -> list[str]:
        """SIGTERM to all, workers first, and what is wrong with how they ended."""
        self._stopping.set()
        self._supervisor.join()
        ordered = sorted(self.parts.values(), key=lambda part: not part.name.startswith("worker"))
        return [problem for part in ordered if (problem := part.end(_END_SECONDS)) is not None]

    def check(self) -> str | None:
        """What `tilewright db check` complains of."""
        done = self._call("db", "check")
        return None if done.returncode == 0 else f"db check: {done.stdout}{done.stderr}"

    def begin_postgres_again(self) -> None:
        """As a supervisor would: until it runs. Processes of the one that was killed may still be ending."""
        assert self.postgres is not None
        while True:
            try:
                self.postgres.start()
            except RuntimeError:
                time.sleep(0.2)
            else:
                self.database_came()
                return

    def database_went(self) -> None:
        self._database_away_until = math.inf

    def database_came(self) -> None:
        self._database_away_until = time.monotonic() + _RECOVERY_SECONDS

    def _begin_postgres(self) -> None:
        server = PostgresServer(durable=True, directory=self.folder / "postgres", max_connections="150")
        self.postgres = self._stack.enter_context(server)
        server.run("CREATE DATABASE chaos")
        self.db = server.url("chaos")

    def _add_all(self) -> None:
        port = ("--port", str(self._port))
        if self.form == "scaled":
            self._add("api", "serve", "--no-search", "--processes", "2", *port)
            for n in range(2):
                self._add(f"search-{n}", "search", "run", "--concurrency", "3")
        else:
            self._add("api", "serve", *port)
        for n in range(2):
            name = f"worker-{n}"
            words = ("worker", "run", "--url", self.proxy.url, "--name", name, "--device", f"cpu:{n}")
            self._add(name, *words, "--token-file", str(self.folder / "worker.token"))

    def _add(self, name: str, *words: str) -> None:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        made = environment(PYTHONPATH=str(_SOURCE), **_SETTINGS)
        if name.startswith("worker"):
            # Two stands, or others' workers, may share these processors.
            made["TILEWRIGHT_LOCK_FOLDER"] = str(self.folder / "locks")
            made["PYTHONPATH"] += os.pathsep + str(HERE / "clock")
            made["CHAOS_CLOCK"] = str(self.folder / f"{name}.clock")
        else:
            made["TILEWRIGHT_DB"] = self.db
        self.parts[name] = Part(name, words, folder, made, folder / "tmp")

    def _run(self, *words: str) -> None:
        done = self._call(*words)
        if done.returncode != 0:
            raise RuntimeError(f"tilewright {' '.join(words)} ended with {done.returncode}: {done.stderr}")

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        made = environment(PYTHONPATH=str(_SOURCE), TILEWRIGHT_DB=self.db)
        command = [sys.executable, "-m", "tilewright.service.cli", *words]
        return subprocess.run(command, env=made, capture_output=True, text=True, cwd=self.folder)

    def _supervise(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY):
            for part in self.parts.values():
                self._look_after(part, time.monotonic())

    def _look_after(self, part: Part, now: float) -> None:
        if part.process is None:
            if now >= part.again_at:
                part.begin()
        elif (code := part.process.poll()) is not None:
            self._note_end(part, code, now)
            part.process = None
            part.again_at = now + self._random.uniform(0.1, 3.0)

    def _note_end(self, part: Part, code: int, now: float) -> None:
        """A program that begins while its database is away ends and says so; one that runs waits for it."""
        self._say(f"{part.name} ended with {code}")
        began_without = part.begun < self._database_away_until and now - part.begun < 2 * _RECOVERY_SECONDS
        if part.hit or (began_without and code in (1, 2) and not part.name.startswith("worker")):
            return
        if part.name.startswith("worker") and code == 2:
            return  # out of reach for longer than it tries; a service manager starts it again
        self.ended.append(f"{part.name} ended with {code} by itself:\n{part.last_lines()}")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come:\n{self.parts['api'].last_lines()}")
            time.sleep(_LOOK_EVERY)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
