"""A device that only runs, as a process, and a server in memory that it talks to."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tilewright.compiler import te, topi
from tilewright.compiler.codegen.standalone import standalone_program
from tilewright.compiler.ir import PrimFunc, to_json
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target
from tilewright.measure.reference import Reference
from tilewright.measure.run_only import runner
from tilewright.measure.run_only.data import write_data

SCRIPT = Path(runner.__file__)
LIMITS = {"build_seconds": 10.0, "run_seconds": 10.0, "memory_bytes": 1 << 28}
NATIVE = sys.platform == "linux" and os.uname().machine == "x86_64"
native = pytest.mark.skipif(not NATIVE, reason="its programs are for Linux on x86-64")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class FakeServer:
    """Grants one lease, notes every call, and ends the runner once that lease is over."""

    artifacts: dict[str, bytes] = field(default_factory=dict)
    items: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    answers: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    headers: list[tuple[str, str]] = field(default_factory=list)
    traces: dict[str, str | None] = field(default_factory=dict)
    url: str = ""
    renewed: threading.Event = field(default_factory=threading.Event)
    renew_seconds: float = 60.0
    drains: bool = False

    def add(self, program: bytes, data: bytes, **more: Any) -> None:
        refs = {}
        for name, content in (("program", program), ("data", data)):
            self.artifacts[digest(content)] = content
            refs[name] = {"sha256": digest(content), "url": "/x", "bytes": len(content)}
        number = len(self.items)
        item = {"item": f"t.{number}", "attempt": 1, "limits": LIMITS, "best_seconds": None, **refs, **more}
        self.items.append(item)

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.calls.append((path, body))
        if path in self.answers:
            return self.answers[path]
        verb = path.rpartition(":")[2]
        if path == "/v1/workers":
            return 201, {"worker": "w1", "ttl_seconds": 30, "renew_seconds": 10, "wait_seconds": 0.1}
        if path == "/v1/leases":
            if self.drains:
                return 204, {"Tilewright-Worker": "drain"}
            if sum(p == path for p, _ in self.calls) > 1:
                return 204, None
            if not self.items:
                return 403, {"code": "token-wrong", "detail": "enough"}
            return 200, {
                "lease": "l1", "ttl_seconds": 30.0, "renew_seconds": self.renew_seconds, "items": self.items,
            }  # fmt: skip
        if verb == "renew":
            self.renewed.set()
        drain = verb == "settle" and len(self.results) == len(self.items)
        return 200, {"cancelled": [], "drain": drain, "ttl_seconds": 30.0}

    @property
    def results(self) -> list[dict[str, Any]]:
        return [body["results"][0] for path, body in self.calls if path.endswith(":settle")]

    def verbs(self) -> list[str]:
        return [path.rpartition(":")[2] for path, _ in self.calls if ":" in path]


@dataclass
class Device:
    """A runner as a process, in an empty folder."""

    folder: Path
    url: str
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *options: str) -> subprocess.Popen[str]:
        (self.folder / "tok").write_text("secret\n")
        (self.folder / "work").mkdir(exist_ok=True)
        where = ["--work-dir", str(self.folder / "work"), "--token-file", str(self.folder / "tok")]
        child = subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT), "--url", self.url, "--name", "board", *where, *options],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "SECRET": "1",
                "TILEWRIGHT_LOCK_FOLDER": str(self.folder / "locks"),
            },
        )
        self.children.append(child)
        return child

    def emulator(self, script: str, runs: str = "*") -> str:
        """A shell script in the place of an emulator. What it is given to find out which programs it runs
        ends well for the architectures, by their numbers in ELF, that `runs` matches."""
        path = self.folder / "emulator"
        number = "$(od -An -tu2 -j18 -N2 \"$1\" | tr -d ' ')"
        trial = f'case {number} in {runs}) exit 0;; esac; echo "Invalid ELF image" >&2; exit 255'
        path.write_text(f'#!/bin/sh\ncase "$1" in */trial) {trial};; esac\n{script}\n')
        path.chmod(0o755)
        return str(path)

    def run(self, *options: str) -> tuple[int, str]:
        child = self.start(*options)
        _, said = child.communicate(timeout=60)
        assert list((self.folder / "work").iterdir()) == []
        return child.returncode, said


@contextlib.contextmanager
def served() -> Iterator[FakeServer]:
    """A server in memory behind a port."""
    fake = FakeServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.headers.append((self.path, self.headers["Authorization"]))
            fake.traces[self.path.rpartition(":")[2]] = self.headers["traceparent"]
            self._say(*fake.answer(self.path, body))

        def do_GET(self) -> None:
            fake.headers.append((self.path, self.headers["Authorization"]))
            if self.path in fake.answers:
                status, problem = fake.answers[self.path]
                return self._say(status, problem)
            data = fake.artifacts.get(self.path.rpartition("/")[2])
            self.send_response(404 if data is None else 200)
            self.end_headers()
            self.wfile.write(data or b"{}")

        def _say(self, status: int, value: Any) -> None:
            data = b"" if value is None or status == 204 else json.dumps(value).encode()
            self.send_response(status)
            for name, word in (value or {}).items() if status in (204, 302) else ():
                self.send_header(name, word)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        fake.url = f"http://127.0.0.1:{listening.server_address[1]}"
        try:
            yield fake
        finally:
            listening.shutdown()
            thread.join()


@contextlib.contextmanager
def device_of(server: FakeServer) -> Iterator[Device]:
    """A device in a folder of its own, whose runners are ended with it."""
    # Not pytest's folder, which other users may not enter: an unprivileged child runs what lies there.
    with tempfile.TemporaryDirectory(prefix="tilewright-device-") as folder:
        Path(folder).chmod(0o755)
        made = Device(Path(folder), server.url)
        yield made
        for child in made.children:
            child.kill()
            child.communicate()


TARGET = Target.parse("llvm -mcpu=x86-64")


def adding(more: int, n: int = 1 << 12) -> PrimFunc:
    a = te.placeholder((n,), "int32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] + more, name="B")])


def program(func: PrimFunc) -> bytes:
    return standalone_program(default_schedule(func, TARGET).func, TARGET)


def data(func: PrimFunc, folder: Path) -> bytes:
    path = folder / "made"
    write_data(Reference.of(to_json(func), 0), path)
    return path.read_bytes()


def looping() -> bytes:
    """A program that never answers: the kernel's first call takes for ever."""
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    from tilewright.compiler.schedule import Schedule

    return standalone_program(Schedule(func).func, TARGET)
