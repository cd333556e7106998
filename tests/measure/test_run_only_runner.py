"""The runner of devices that only run, against a server in memory: what it refuses, and how it ends."""

from __future__ import annotations

import ast
import hashlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tilewright.compiler import te, topi
from tilewright.compiler.codegen.dims import params_of
from tilewright.compiler.codegen.standalone import Layout, standalone_program
from tilewright.compiler.codegen.standalone.linux import SYSTEMS
from tilewright.compiler.codegen.standalone.relocate import AARCH64, RISCV, X86_64
from tilewright.compiler.ir import PrimFunc, to_json
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Hardware, Target, detect
from tilewright.compiler.target.cpus import CPUS
from tilewright.compiler.target.features import known_features
from tilewright.compiler.target.hardware import KEY_FIELDS
from tilewright.measure import timing
from tilewright.measure.device import Device as Processors
from tilewright.measure.device_lock import DeviceLock
from tilewright.measure.messages import PROTOCOL
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


@pytest.fixture
def server() -> Iterator[FakeServer]:
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


@pytest.fixture
def device(server: FakeServer) -> Iterator[Device]:
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


@native
def test_what_is_said_of_a_candidate_carries_the_trace_of_its_job(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    func = topi.create({"op": "matmul", "m": 32, "n": 32, "k": 32})
    trace = f"00-{'1' * 32}-{'2' * 16}-01"
    server.add(program(func), data(func, tmp_path), traceparent=trace)
    assert device.run()[0] == 0
    assert (server.traces["/v1/workers"], server.traces["start"], server.traces["settle"]) == (
        None,
        trace,
        trace,
    )


@native
def test_a_right_program_is_timed_and_its_error_told(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    func = topi.create({"op": "matmul", "m": 32, "n": 32, "k": 32})
    server.add(program(func), data(func, tmp_path))
    assert device.run()[0] == 0
    (result,) = server.results
    assert result["seconds"] == min(result["samples"]) > 0
    assert len(result["samples"]) >= 3 and 0 < result["error"] <= 1
    assert server.verbs() == ["start", "settle", "leave"]
    assert {token for _, token in server.headers} == {"Bearer secret"}


@native
def test_a_wrong_program_has_no_time(server: FakeServer, device: Device, tmp_path: Path) -> None:
    server.add(program(adding(2)), data(adding(1), tmp_path))
    device.run()
    (result,) = server.results
    assert "seconds" not in result and result["failure"]["last_words"] == ""
    assert result["failure"]["kind"] == "wrong_output"
    assert result["failure"]["message"].endswith("4096 elements are wrong")


@native
def test_bytes_of_another_digest_are_never_run(server: FakeServer, device: Device, tmp_path: Path) -> None:
    proof = tmp_path / "it ran"
    good = data(adding(1), tmp_path)
    server.add(program(adding(1)), good)
    evil = b"#!/bin/sh\ntouch '" + str(proof).encode() + b"'\n"
    sha256 = server.items[0]["program"]["sha256"]
    server.artifacts[sha256] = evil.ljust(server.items[0]["program"]["bytes"], b"#")
    code, _ = device.run()
    (result,) = server.results
    assert (code, result["failure"]["kind"]) == (0, "run_error")
    assert result["failure"]["message"] == (
        f"/v1/artifacts/{sha256} has other bytes than its digest says; it was not run"
    )
    assert not proof.exists() and "start" not in server.verbs()


@native
@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"more"])
def test_data_that_is_cut_off_or_longer_is_not_used(
    server: FakeServer, device: Device, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    server.add(program(adding(1)), data(adding(1), tmp_path))
    sha256 = server.items[0]["data"]["sha256"]
    server.artifacts[sha256] = change(server.artifacts[sha256])
    device.run()
    assert server.results[0]["failure"]["message"].endswith("it was not run")


@native
def test_a_program_that_is_missing_fails_its_trial_alone(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    good = data(adding(1), tmp_path)
    server.add(program(adding(2)), good)
    server.add(program(adding(1)), good)
    path = f"/v1/artifacts/{server.items[0]['program']['sha256']}"
    server.answers[path] = (404, {"code": "not-found", "detail": "there is no such artifact"})
    assert device.run()[0] == 0
    first, second = server.results
    assert first["failure"]["message"] == "there is no such artifact"
    assert second["seconds"] > 0


def _looping() -> bytes:
    """A program that never answers: the kernel's first call takes for ever."""
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    from tilewright.compiler.schedule import Schedule

    return standalone_program(Schedule(func).func, TARGET)


@native
def test_a_program_that_takes_too_long_is_ended(server: FakeServer, device: Device, tmp_path: Path) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    size = Layout.of(params_of(func)).bytes
    server.add(_looping(), bytes(size), limits={**LIMITS, "run_seconds": 0.5})
    device.run()
    failure = server.results[0]["failure"]
    assert (failure["kind"], failure["message"], failure["limit"]) == (
        "run_timeout", "the run took longer than its limit of 0.5 s", 0.5,
    )  # fmt: skip
    assert 0.5 <= failure["elapsed"] < 5.0


@native
def test_a_first_call_that_is_many_times_slower_than_the_best_is_out_of_the_race(
    server: FakeServer, device: Device
) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    server.add(_looping(), bytes(Layout.of(params_of(func)).bytes), best_seconds=1e-5)
    device.run()
    (result,) = server.results
    assert result.get("failure") is None
    assert (result["censored"], result["seconds"], result["samples"]) == (True, 0.1, [0.1])


@native
@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ("kill -SEGV $$", "it died of SIGSEGV while running"),
        ("exit 3", "it exited with status 3 while running, without a result"),
        ("cat", "it exited with status 0 while running, without a result"),
    ],
)
def test_how_a_program_dies_is_told(
    server: FakeServer, device: Device, tmp_path: Path, shell: str, message: str
) -> None:
    # A script stands in for a program of machine code: it needs files of its own, as an emulator does.
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "aarch64", "mcpu": "cortex-a53"}))
    server.add(f"echo last words >&2\n{shell} </dev/null\n".encode(), b"data")
    device.run("--exec-prefix", device.emulator('exec sh "$1"'), "--facts", str(facts))
    failure = server.results[0]["failure"]
    assert (failure["kind"], failure["message"], failure["last_words"]) == (
        "run_error", message, "last words",
    )  # fmt: skip


@native
def test_a_program_is_confined(server: FakeServer, device: Device, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "aarch64"}))
    words = "id -u; ulimit -c; ulimit -f; env | grep -c SECRET; grep NoNewPrivs /proc/self/status"
    words += "; ls /proc/self/fd"
    server.add(f"({words}) >&2\n".encode(), b"data")
    device.run("--exec-prefix", device.emulator('exec sh "$1"'), "--facts", str(facts))
    said = server.results[0]["failure"]["last_words"].split()
    user = "65534" if os.geteuid() == 0 else str(os.geteuid())
    # The last of the descriptors is that of the folder itself, which `ls` reads.
    assert said[:6] == [user, "0", "0", "0", "NoNewPrivs:", "1"]
    assert set(said[6:]) <= {"0", "1", "2", "3", "4"}


@native
def test_sigterm_drains_and_the_rest_is_given_back(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    for _ in range(3):
        server.add(_looping(), bytes(Layout.of(params_of(func)).bytes), limits={**LIMITS, "run_seconds": 2.0})
    child = device.start()
    while "start" not in server.verbs():
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    assert child.returncode == 0
    assert [result["failure"]["kind"] for result in server.results] == ["run_timeout"]
    assert server.verbs() == ["start", "settle", "release", "leave"]


def test_a_device_that_the_server_drains_ends(server: FakeServer, device: Device) -> None:
    server.drains = True
    assert device.run() == (0, "attached as w1\ndrained\n")


@pytest.mark.parametrize(("status", "code"), [(404, "not-found"), (409, "attach-again")])
def test_a_device_attaches_again_where_the_server_asks_it_to(
    server: FakeServer, device: Device, status: int, code: str
) -> None:
    server.answers["/v1/leases"] = (status, {"code": code, "detail": "for this reason"})
    child = device.start()
    sessions = set()
    while len(sessions) < 2:
        time.sleep(0.01)
        sessions = {said["session"] for path, said in list(server.calls) if path == "/v1/workers"}
    child.terminate()
    assert child.wait(20) == 0


@native
def test_a_killed_runner_takes_its_program_with_it(server: FakeServer, device: Device) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    server.add(_looping(), bytes(Layout.of(params_of(func)).bytes))
    child = device.start()

    def programs() -> list[psutil.Process]:
        place = device.folder / "work"
        found = psutil.process_iter(["cmdline"])
        return [p for p in found if place in Path((p.info["cmdline"] or [""])[0]).parents]

    while not programs():
        time.sleep(0.01)
    (running,) = programs()
    child.kill()
    child.communicate()
    running.wait(5)
    # What it could not remove is removed by the next one.
    server.calls.clear()
    server.items.clear()
    assert device.run()[0] == 3


@native
def test_a_lease_is_renewed_while_a_program_runs(server: FakeServer, device: Device, tmp_path: Path) -> None:
    func = topi.create({"op": "matmul", "m": 1500, "n": 1500, "k": 1500})
    server.renew_seconds = 0.1
    server.add(_looping(), bytes(Layout.of(params_of(func)).bytes), limits={**LIMITS, "run_seconds": 1.0})
    device.run()
    assert server.renewed.is_set()


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("token-wrong", 3),
        ("scope-missing", 3),
        ("superseded", 5),
        ("name-retired", 6),
        ("protocol-refused", 7),
    ],
)
def test_what_ends_a_runner_has_its_exit_code(
    server: FakeServer, device: Device, code: str, exit_code: int
) -> None:
    server.answers["/v1/workers"] = (403, {"code": code, "detail": "for this reason"})
    status, said = device.run()
    assert (status, said) == (exit_code, "tilewright_runner: for this reason\n")


def test_a_redirect_does_not_take_the_token_elsewhere(server: FakeServer, device: Device) -> None:
    server.answers["/v1/workers"] = (302, {"Location": f"{server.url}/elsewhere"})
    code, _ = device.run()
    assert code != 0
    assert {path for path, _ in server.headers} == {"/v1/workers"}


def test_a_token_is_not_sent_in_the_clear(device: Device) -> None:
    device.url = "http://tune.example"
    assert device.run() == (
        3, "tilewright_runner: refusing to send the token over http: use https, or --insecure-http\n"
    )  # fmt: skip


def test_an_emulated_device_says_what_it_is(device: Device) -> None:
    code, said = device.run("--exec-prefix", "qemu-aarch64-static")
    assert code == 64 and "--exec-prefix and --facts go together" in said


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ("183", "its programs are for aarch64: name such a device's facts, or another emulator"),
        ("183|243", "its programs are for aarch64, riscv64: name such a device's facts, or another emulator"),
        ("none", "it says 'Invalid ELF image'"),
    ],
)
def test_facts_of_another_instruction_set_than_the_emulators_are_refused_before_it_attaches(
    server: FakeServer, device: Device, tmp_path: Path, runs: str, words: str
) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "x86_64", "mcpu": "x86-64"}))
    said = device.run("--exec-prefix", device.emulator("", runs), "--facts", str(facts))
    place = f"emulator runs no programs for x86_64, the architecture in {facts}"
    assert said == (6, f"tilewright_runner: {place}; {words}\n")
    assert server.calls == []


def test_facts_of_an_architecture_that_has_no_programs_are_refused(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "armv7l"}))
    assert device.run("--exec-prefix", device.emulator(""), "--facts", str(facts)) == (
        6,
        f"tilewright_runner: no programs are made for the architecture 'armv7l' in {facts}, "
        "but for x86_64, aarch64, riscv64\n",
    )
    assert server.calls == []


@native
def test_the_least_program_of_an_architecture_is_run_by_what_runs_its_programs(tmp_path: Path) -> None:
    assert runner.why_not_run([], "x86_64", str(tmp_path)) is None
    assert runner.why_not_run(["nice"], "x86_64", str(tmp_path)) is None
    assert "such file" in (runner.why_not_run(["/no/emulator"], "aarch64", str(tmp_path)) or "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="needs qemu-aarch64-static")
def test_an_emulator_of_aarch64_is_found_to_be_one(tmp_path: Path) -> None:
    ran = {each: runner.why_not_run(["qemu-aarch64-static"], each, str(tmp_path)) for each in runner.ENDINGS}
    assert [each for each, why in ran.items() if why is None] == ["aarch64"]


@native
def test_a_program_for_another_instruction_set_is_not_run_and_both_are_named(
    server: FakeServer, device: Device, tmp_path: Path
) -> None:
    other = Target.parse("llvm -mcpu=cortex-a53")
    func = default_schedule(adding(1), other).func
    server.add(standalone_program(func, other), data(adding(1), tmp_path))
    code, _ = device.run()
    (result,) = server.results
    assert (code, result["failure"]["kind"], result["failure"]["message"]) == (
        0,
        "run_error",
        "the program is for aarch64, another instruction set than this device's, x86_64; it was not run: "
        "submit the job for the device's target",
    )
    assert "start" not in server.verbs()


def test_facts_are_taken_as_the_probe_prints_them(device: Device, tmp_path: Path) -> None:
    facts = {"architecture": "aarch64", "vendor": "0x41", "mcpu": "cortex-a53"}
    keys = []
    for number, said in enumerate((facts, {"hardware_key": "0" * 64, "hardware": facts})):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(said))
        child = device.start("--exec-prefix", "/bin/true", "--facts", str(path), "--probe")
        keys.append(json.loads(child.communicate()[0])["hardware_key"])
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--label", "rpi3"], 64, "--label must be key=value, got 'rpi3'"),
        (["--token-file", "/no/tok"], 6, "the token file /no/tok cannot be read: No such file or directory"),
        (["--work-dir", "/no/dir"], 6, "programs cannot be put into /no/dir: No such file or directory"),
        (
            ["--exec-prefix", "no-emulator", "--facts", "x"],
            6,
            "the emulator no-emulator is not there, or no program",
        ),
        (
            ["--exec-prefix", "/bin/true", "--facts", "/dev/null"],
            6,
            "the facts in /dev/null cannot be read: Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_attached(
    server: FakeServer, device: Device, options: list[str], code: int, words: str
) -> None:
    assert device.run(*options) == (code, f"tilewright_runner: {words}\n")
    assert server.calls == []


def test_wrong_usage_does_not_end_like_a_server_that_is_away(device: Device) -> None:
    code, said = device.run("--nmae", "board")
    assert code == 64 and said.endswith("unrecognized arguments: --nmae board\n")


def test_a_device_measures_one_thing_at_a_time(server: FakeServer, device: Device) -> None:
    with DeviceLock(Processors.parse("cpu"), "other", device.folder / "locks").acquire():
        code, said = device.run()
    assert code == 8 and "is in use by another worker" in said
    assert server.calls == []
    assert device.run()[0] != 8


def test_times_of_an_emulator_are_those_of_other_hardware(device: Device, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"architecture": "aarch64", "vendor": "0x41", "mcpu": "cortex-a53"}))
    child = device.start("--exec-prefix", "qemu-aarch64-static", "--facts", str(facts), "--probe")
    said = json.loads(child.communicate()[0])
    assert said["hardware"]["vendor"] == "emulated by qemu-aarch64-static: 0x41"
    assert said["hardware_key"] == Hardware.of(said["hardware"]).key


@pytest.mark.skipif(sys.platform != "linux", reason="it runs on Linux")
def test_the_facts_are_those_of_a_worker_with_a_compiler() -> None:
    own, full = runner.facts_of_this_device(), detect().facts
    names = ("architecture", "vendor", "family", "model", "stepping", "l1d", "l2", "l3", "accelerator")
    assert {n: own[n] for n in names} == {n: full[n] for n in names}
    assert set(own["features"] or ()) <= set(full["features"] or ())
    assert runner.hardware_key(own) == Hardware.of(own).key
    assert Target.parse("llvm", Hardware.of(own)).architecture == own["architecture"]


def test_the_runner_is_one_file_of_python_3_9_and_its_standard_library() -> None:
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import)
            else [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported <= sys.stdlib_module_names
    assert not imported & {"pickle", "marshal", "importlib", "runpy"}
    assert "__future__" in imported  # Python 3.9 cannot evaluate `int | None`


def test_it_speaks_the_protocol_of_the_release_it_comes_with() -> None:
    assert runner.PROTOCOL == PROTOCOL


def test_its_race_is_that_of_every_worker() -> None:
    names = (
        *("SAMPLES", "SAMPLE_SECONDS", "ENOUGH_SECONDS", "CONTENDER_SECONDS", "NEAR", "CENSOR_RATIOS"),
        *("COLD_RATIO", "FIRST_SECONDS", "FIRST_RATIO"),
    )
    assert {n: getattr(runner, n) for n in names} == {n: getattr(timing, n) for n in names}


def test_its_tables_name_processors_and_features_that_the_compiler_knows() -> None:
    assert {*runner.ARM_PARTS.values(), *runner.GENERAL.values()} <= CPUS.keys()
    for architecture, words in runner.FEATURES.items():
        assert set(words.values()) <= set(known_features(architecture))
    assert tuple(runner.KEY_FIELDS) == KEY_FIELDS
    assert set(runner.ELF_MACHINES.values()) == runner.ENDINGS.keys() == SYSTEMS.keys()
    assert list(runner.ELF_MACHINES) == [X86_64, AARCH64, RISCV]


def test_enough_calls_fill_a_sample() -> None:
    assert runner.enough(1, 1e-6) == 100
    assert runner.enough(1, 1.0) == 1
    assert runner.enough(100, 1e-3) == 221
