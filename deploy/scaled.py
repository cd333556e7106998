"""The scaled form on one machine without containers: what docker-compose.yml starts, as processes.

`make scaled` runs PostgreSQL, the migration, API processes behind one address, search runners and a worker,
says where they are, and ends all of them on Ctrl-C; where it is killed, they end with it. Nothing is left but
the named data directory, whose jobs go on at the next start.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import psycopg
from postgres_server import PostgresServer

from tilewright.db import open_store

DATABASE = "tilewright"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
_MAIN = (
    "import sys; from tilewright.service.parent_death import die_with; die_with(int(sys.argv.pop(1)));"
    "from tilewright.service.cli import main; main()"
)
"""The command line as a process that ends with the one whose id comes first, even where that is killed."""
_LOOK_EVERY = 0.2


class StartError(Exception):
    """A part of it did not start; the message holds the end of its log."""


class Scaled:
    """The processes, as a context. `url` is where the API is, `token` and `worker_token` name files.

    The database's address, with its password, is in the environment of the processes, not in their command
    lines. They end with this process, however it ends; the thread that enters must live as long.
    """

    def __init__(
        self,
        data: Path,
        *,
        port: int = 0,
        apis: int = 2,
        searches: int = 2,
        workers: int = 1,
        concurrency: int = 4,
        settings: dict[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self.data = data
        self.url = ""
        self.db = ""
        self.token = data / "token"
        self.worker_token = data / "worker.token"
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self._port = port
        self._apis = apis
        self._searches = searches
        self._workers = workers
        self._concurrency = concurrency
        self._settings = settings or {}
        self._python = python
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Scaled:
        self.data.mkdir(parents=True, exist_ok=True)
        try:
            # PostgreSQL runs as another user where this is root, in a directory of its own.
            self.data.chmod(0o711)
            server = self._stack.enter_context(
                PostgresServer(durable=True, directory=self.data / "postgres", max_connections="300")
            )
            _create_database(server)
            self.db = server.url(DATABASE)
            self._run("db", "upgrade")
            for path, scope in ((self.token, "jobs:write"), (self.worker_token, "worker")):
                self._give_token(path, scope)
            self._serve()
            for n in range(self._searches):
                self._begin(f"search-{n}", "search", "run", "--concurrency", str(self._concurrency))
            for n in range(self._workers):
                self._begin(
                    f"worker-{n}",
                    *("worker", "run", "--url", self.url, "--token-file", str(self.worker_token)),
                    *("--name", f"worker-{n}"),
                )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # The last that was begun ends first: a worker that drains still has a result to deliver.
        for name in reversed(list(self.children)):
            self.end(name)
        self._stack.close()

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End one of the processes, by force when it takes too long."""
        child = self.children.pop(name)
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(how)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def dead(self) -> str | None:
        """Which of the processes has ended, with the end of its log; None while all run."""
        for name, child in self.children.items():
            if child.poll() is not None:
                return f"{name} ended with {child.returncode}:\n{self.log(name)}"
        return None

    def log(self, name: str) -> str:
        return (self.data / f"{name}.log").read_text("utf-8", "replace")[-3000:]

    def _serve(self) -> None:
        ready = self.data / "url"
        ready.unlink(missing_ok=True)
        options = ("--no-search", "--processes", str(self._apis), "--port", str(self._port))
        self._begin("api", "serve", *options, "--ready-file", str(ready))
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self.dead() or time.monotonic() > deadline:
                raise StartError(self.dead() or f"the API did not start in time:\n{self.log('api')}")
            time.sleep(0.05)
        self.url = ready.read_text().strip()

    def _give_token(self, path: Path, scope: str) -> None:
        """Have a valid token of this scope in the file. One that is there stays: jobs are steered by the
        token that made them."""
        if path.exists():
            with open_store(self.db, create=False) as store:
                token = store.token_by_secret(path.read_text("utf-8", "replace").strip())
            if token is not None and scope in token.scopes:
                return
            path.unlink()
        self._run("token", "create", "--scope", scope, "--name", "scaled", "--out", str(path))

    def _begin(self, name: str, *words: str) -> None:
        with (self.data / f"{name}.log").open("wb") as log:
            self.children[name] = subprocess.Popen(
                self._command(words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C at the terminal is for this program, which ends them in order.
                start_new_session=True,
                env=self._environment(),
            )

    def _run(self, *words: str) -> None:
        done = subprocess.run(self._command(words), env=self._environment(), capture_output=True, text=True)
        if done.returncode != 0:
            raise StartError(f"tilewright {' '.join(words)} ended with {done.returncode}: {done.stderr}")

    def _command(self, words: Sequence[str]) -> list[str]:
        return [self._python, "-c", _MAIN, str(os.getpid()), *words]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TILEWRIGHT_DB": self.db, **self._settings}


def _create_database(server: PostgresServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as conn:
        if conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone() is None:
            conn.execute(f"CREATE DATABASE {DATABASE}")


@contextlib.contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    told = threading.Event()

    def stop(sig: int, frame: FrameType | None) -> None:
        told.set()

    before = {sig: signal.signal(sig, stop) for sig in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(tempfile.gettempdir()) / f"tilewright-scaled-{os.getuid()}"
    parser.add_argument("--data", type=Path, default=default, help="directory that stays (%(default)s)")
    parser.add_argument("--port", type=int, default=8470, help="port of the API; 0 takes a free one")
    parser.add_argument("--api", type=int, default=2, help="API processes")
    parser.add_argument("--search", type=int, default=2, help="search runners")
    parser.add_argument("--workers", type=int, default=1, help="workers")
    said = parser.parse_args()
    data = said.data.absolute()
    with _told_to_stop() as told:
        try:
            with Scaled(
                data, port=said.port, apis=said.api, searches=said.search, workers=said.workers
            ) as scaled:
                print(scaled.url, flush=True)
                print(f"token file: {scaled.token}; data and logs: {data}; Ctrl-C ends it", file=sys.stderr)
                while not told.wait(_LOOK_EVERY):
                    if (dead := scaled.dead()) is not None:
                        raise StartError(dead)
        except StartError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
