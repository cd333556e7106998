#!/usr/bin/env python3
"""Measures for a tilewright server on a device that has Python 3.9 and nothing else.

    tilewright worker runner-script > tilewright_runner.py        # where tilewright is installed
    python3 tilewright_runner.py --url https://tune.example --token-file tok --name board-7

It takes leases over HTTP, fetches programs and data by their SHA-256, checks that before anything is run,
runs each program in a confined child and reports its times. It executes nothing else that the server sends.
SIGTERM drains; a second one stops at once. Exit codes: 0 drained, 1 failed, 2 no server, 3 the token is not
enough, 5 superseded by a newer session of this name, 6 a file or folder that was named is wrong or the
name was removed, 7 version refused, 8 another worker has the processors, 64 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import json
import math
import os
import platform
import secrets
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import IO, Any, NoReturn
from urllib.parse import urlsplit

PROTOCOL = 2
VERSION = "1"
DRAINED, FAILED, UNREACHABLE, UNAUTHORIZED, SUPERSEDED, SETTING, VERSION_REFUSED, BUSY, USAGE = (
    0, 1, 2, 3, 5, 6, 7, 8, 64
)  # fmt: skip
BATCH = 8
TIMEOUT_SECONDS = 30.0
OUTAGE_SECONDS, ATTACH_SECONDS = 600.0, 20.0
MOST_ANSWER_BYTES = 16 << 20
KEPT_DATA_FILES = 2
FOLDERS = "tilewright-run-"
LOCK_FOLDERS, LOCKS = ("/run/lock", "/tmp"), "tilewright-devices"
NOBODY = 65534
BESIDE_ARRAYS = 64 << 20  # what a program maps beside its arrays and its data
NO_MEMORY = 12
MEMORY_SHARE = 0.75

# The race between candidates: measure/timing.py says why these numbers.
SAMPLES, SAMPLE_SECONDS, ENOUGH_SECONDS, CONTENDER_SECONDS, NEAR = 3, 0.002, 0.010, 0.020, 1.05
CENSOR_RATIOS, COLD_RATIO, FIRST_SECONDS, FIRST_RATIO = (2.0, 1.5), 3.0, 0.1, 20.0
MOST_SAMPLES, MOST_CALLS = 1000, 2000000

# Facts that form the hardware key (compiler/target/hardware.py), and Linux's words for LLVM's features.
KEY_FIELDS = (
    ["architecture", "vendor", "family", "model", "stepping", "features", "l1d", "l2", "l3", "accelerator"]
)  # fmt: skip
MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
GENERAL = {"x86_64": "x86-64", "aarch64": "cortex-a53", "riscv64": "generic-rv64"}
ARM_PARTS = {
    "0xd03": "cortex-a53", "0xd05": "cortex-a55", "0xd07": "cortex-a57", "0xd08": "cortex-a72",
    "0xd09": "cortex-a73", "0xd0a": "cortex-a75", "0xd0b": "cortex-a76", "0xd0c": "neoverse-n1",
    "0xd0d": "cortex-a77", "0xd40": "neoverse-v1", "0xd41": "cortex-a78", "0xd44": "cortex-x1",
    "0xd47": "cortex-a710", "0xd48": "cortex-x2", "0xd49": "neoverse-n2", "0xd4f": "neoverse-v2",
}  # fmt: skip
FEATURES = {
    "aarch64": {
        "asimd": "neon", "asimdhp": "fullfp16", "asimddp": "dotprod", "bf16": "bf16", "i8mm": "i8mm",
        "sve": "sve", "sve2": "sve2",
    },
    "x86_64": {
        "sse2": "sse2", "pni": "sse3", "ssse3": "ssse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2",
        "popcnt": "popcnt", "abm": "lzcnt", "bmi1": "bmi", "bmi2": "bmi2", "movbe": "movbe", "gfni": "gfni",
        "avx": "avx", "f16c": "f16c", "fma": "fma", "avx2": "avx2", "avx_vnni": "avxvnni",
        "avx512f": "avx512f", "avx512cd": "avx512cd", "avx512dq": "avx512dq", "avx512bw": "avx512bw",
        "avx512vl": "avx512vl", "avx512_vnni": "avx512vnni", "avx512_bf16": "avx512bf16",
        "avx512_fp16": "avx512fp16",
    },
    "riscv64": {
        "m": "m", "a": "a", "f": "f", "d": "d", "c": "c", "v": "v", "zba": "zba", "zbb": "zbb", "zbs": "zbs",
        "zfhmin": "zfhmin", "zfh": "zfh", "zvfhmin": "zvfhmin", "zvfh": "zvfh",
    },
}  # fmt: skip

# Machines by their numbers in ELF, and code for Linux that ends with status 0.
ELF_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
ENDINGS = {
    "x86_64": "31ffb83c0000000f05",  # xor edi, edi; mov eax, 60; syscall
    "aarch64": "000080d2a80b80d2010000d4",  # mov x0, 0; mov x8, 93; svc 0
    "riscv64": "130500009308d00573000000",  # li a0, 0; li a7, 93; ecall
}


class Trouble(Exception):
    """A call that did not do what was asked: `code` is the server's word for it, "" where none answered."""

    def __init__(self, message: str, code: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class Stop(Exception):
    """The end of this program, with an exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ---- what this device is ------------------------------------------------------------------------------


def facts_of_this_device() -> dict[str, Any]:
    """The facts that a worker with a compiler would report, as far as the standard library can see."""
    architecture = MACHINES.get(platform.machine().lower(), platform.machine().lower())
    info = cpuinfo()
    words = (info.get("Features") or info.get("flags") or "").split()
    known = FEATURES.get(architecture, {})
    letters, *extensions = info.get("isa", "").split("_")  # RISC-V's, such as rv64imafdcv_zba
    words += [*letters[4:], *extensions]
    features = sorted({known[w] for w in words if w in known}) or None
    caches = {level: cache_bytes(level) for level in ("1", "2", "3")}
    arm = "CPU implementer" in info
    stepping = "{}.{}".format(info.get("CPU variant", "?"), info.get("CPU revision", "?"))
    return {
        "architecture": architecture,
        "vendor": info.get("CPU implementer" if arm else "vendor_id"),
        "family": info.get("CPU architecture" if arm else "cpu family"),
        "model": info.get("CPU part" if arm else "model"),
        "stepping": stepping if arm else info.get("stepping"),
        "features": features,
        "l1d": caches["1"],
        "l2": caches["2"],
        "l3": caches["3"],
        "accelerator": None,
        "mcpu": ARM_PARTS.get(info.get("CPU part", "")) if arm else GENERAL.get(architecture),
        "model_name": info.get("model name") or info.get("Model") or platform.processor() or None,
        "logical_cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_of_this_device(),
        "os": platform.system(),
        "os_release": platform.release(),
        "python": platform.python_version(),
    }


def cpuinfo() -> dict[str, str]:
    try:
        with open("/proc/cpuinfo", errors="replace") as file:
            first = file.read().split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cache_bytes(level: str, folder: str = "/sys/devices/system/cpu/cpu0/cache") -> int | None:
    """Of the data cache of a level; None where the device does not say."""
    for index in range(8):
        words = []
        for name in ("level", "type", "size"):
            try:
                with open(f"{folder}/index{index}/{name}") as file:
                    words.append(file.read().strip())
            except OSError:
                break
        if len(words) == 3 and words[0] == level and words[1] in ("Data", "Unified"):
            unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(words[2][-1], 1)
            return int(words[2].rstrip("KMG")) * unit
    return None


def hardware_key(facts: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON (RFC 8785) of what decides how fast a kernel runs: strings and integers
    alone, so that sorted keys without spaces are canonical."""
    identity = {name: facts.get(name) for name in KEY_FIELDS}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def instruction_set(program: str) -> str | None:
    """That of an executable in ELF, by its header; None of a file that is none."""
    with open(program, "rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:6] != b"\x7fELF\x02\x01":
        return None
    number = struct.unpack_from("<H", head, 18)[0]
    return ELF_MACHINES.get(number, f"machine {number}")


def check_emulator(prefix: list[str], facts: dict[str, Any], path: str, folder: str) -> None:
    """Raises Stop unless the emulator runs programs for the architecture of these facts, read from `path`."""
    wanted, name = facts["architecture"], os.path.basename(prefix[0])
    if wanted not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise Stop(
            SETTING, f"no programs are made for the architecture {wanted!r} in {path}, but for {known}"
        )
    said = {each: why_not_run(prefix, each, folder) for each in (wanted, *ENDINGS)}
    if said[wanted] is None:
        return
    others = [each for each in ENDINGS if said[each] is None]
    words = f"it says {said[wanted]!r}"
    if others:
        words = f"its programs are for {', '.join(others)}: name such a device's facts, or another emulator"
    raise Stop(SETTING, f"{name} runs no programs for {wanted}, the architecture in {path}; {words}")


def why_not_run(prefix: list[str], architecture: str, folder: str) -> str | None:
    """What is said of the least program for an architecture, in place of its end with status 0."""
    code = bytes.fromhex(ENDINGS[architecture])
    number = next(number for number, name in ELF_MACHINES.items() if name == architecture)
    base, head = 0x400000, 64 + 56
    size = head + len(code)
    header = struct.pack(
        "<4sBBBB8xHHIQQQIHHHHHH",
        b"\x7fELF",
        2,
        1,
        1,
        0,
        2,
        number,
        1,
        base + head,
        64,
        0,
        0,
        64,
        56,
        1,
        0,
        0,
        0,
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 1 << 16)
    path = os.path.join(folder, "trial")
    with open(path, "wb") as file:
        file.write(header + segment + code)
    os.chmod(path, 0o555)
    try:
        done = subprocess.run(
            [*prefix, path], stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        os.unlink(path)
    if done.returncode == 0:
        return None
    words = (done.stderr or done.stdout).decode(errors="replace").strip()[-400:]
    return words or f"status {done.returncode}"


# ---- the server ---------------------------------------------------------------------------------------


class Server:
    """Its calls raise Trouble; those of a worker carry its identity once it has registered."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.identity: dict[str, str] = {}
        self.told_to_drain = False
        self.trace = ""  # of the job that is measured, so that the server's log says so too

    def post(self, path: str, said: dict[str, Any]) -> Any:
        body = json.dumps({"protocol": PROTOCOL, **self.identity, **said}).encode()
        answer = self.ask(path, body)
        return json.loads(answer) if answer else None

    def ask(self, path: str, body: bytes) -> bytes:
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        if self.trace:
            headers["traceparent"] = self.trace
        request = urllib.request.Request(self.url + path, body, headers)
        try:
            with OPENER.open(request, timeout=TIMEOUT_SECONDS) as response:
                self.told_to_drain = response.headers.get("Tilewright-Worker") == "drain"
                answer: bytes = response.read(MOST_ANSWER_BYTES)
                return answer
        except urllib.error.HTTPError as error:
            raise self.refused(error) from None
        except (OSError, ValueError) as error:
            raise Trouble(f"nothing answers at {self.url}: {error}") from None

    def refused(self, error: urllib.error.HTTPError) -> Trouble:
        try:
            problem = json.loads(error.read(1 << 20))
            detail, code = str(problem["detail"]), str(problem["code"])
        except (OSError, ValueError, KeyError, TypeError):
            detail, code = f"{self.url} answered {error.code}", "" if error.code >= 500 else "?"
        return Trouble(detail, "" if error.code >= 500 else code, error.code)

    def fetch(self, artifact: dict[str, Any], path: str) -> None:
        """Writes an artifact to a file. Raises Trouble unless the bytes are those of its digest."""
        headers = {"Authorization": "Bearer " + self.token}
        # A path of its own making: the token goes nowhere else.
        place = "/v1/artifacts/" + artifact["sha256"]
        request = urllib.request.Request(self.url + place, None, headers)
        digest, left = hashlib.sha256(), artifact["bytes"]
        try:
            with OPENER.open(request, timeout=TIMEOUT_SECONDS) as response, open(path, "wb") as file:
                while True:
                    block = response.read(min(left + 1, 1 << 18))
                    if not block:
                        break
                    left -= len(block)
                    if left < 0:
                        break
                    digest.update(block)
                    file.write(block)
        except urllib.error.HTTPError as error:
            raise self.refused(error) from None
        except OSError as error:
            raise Trouble(f"{place} could not be fetched: {error}") from None
        if left or digest.hexdigest() != artifact["sha256"]:
            os.unlink(path)
            raise Trouble(f"{place} has other bytes than its digest says; it was not run", "digest")


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirects)

FATAL = {
    "token-needed": UNAUTHORIZED,
    "token-wrong": UNAUTHORIZED,
    "scope-missing": UNAUTHORIZED,
    "superseded": SUPERSEDED,
    "name-retired": SETTING,
    "protocol-refused": VERSION_REFUSED,
}


# ---- one candidate ------------------------------------------------------------------------------------


class Failed(Exception):
    """A candidate without a time, as the protocol's Failure says it."""

    def __init__(
        self, kind: str, message: str, limit: float | None = None, error: float | None = None
    ) -> None:
        super().__init__(message)
        self.failure: dict[str, Any] = {"kind": kind, "message": message[:4000], "limit": limit}
        self.error = error


class Child:
    """A program that runs (compiler/codegen/standalone/harness.py says what it says), confined and on a
    clock. What it writes is read as from a stranger."""

    def __init__(self, prefix: list[str], program: str, data: str, limits: dict[str, Any]) -> None:
        self.limits = limits
        self.started = time.monotonic()
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        try:
            self.process = subprocess.Popen(
                ["sh", "-c", confinement(limits, data, bool(prefix)), "sh", data, *prefix, program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                start_new_session=True,
                bufsize=0,
                **options,
            )
        except OSError as error:
            raise Failed("run_error", f"the program does not start: {error}") from None
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr

    def ask(self, number: int, words: int) -> bytes:
        """Sends a number and reads so many words. Raises Failed for a child that is late or dead."""
        with contextlib.suppress(OSError):  # it has ended, as reading will tell
            self.stdin.write(struct.pack("<q", number))
        return self.hear(words)

    def hear(self, words: int) -> bytes:
        data = b""
        limit: float = self.limits["run_seconds"]
        while len(data) < 8 * words:
            left = self.started + limit - time.monotonic()
            if left <= 0 or STOPPED.is_set():
                raise Failed("run_timeout", f"the run took longer than its limit of {limit:g} s", limit)
            ready, _, _ = select.select([self.stdout], [], [], min(left, 0.2))
            if ready:
                block = self.stdout.read(8 * words - len(data))
                if not block:
                    self.die()
                data += block
        return data

    def die(self) -> NoReturn:
        """Raises what its end means, which came without a result."""
        code = self.process.wait()
        if code == -signal.SIGPROF:
            raise OutOfTheRace("run_error", "it died of SIGPROF while running")
        if code == NO_MEMORY:
            limit = float(memory_for(self.limits))
            raise Failed("run_error", "it needed more memory than this device gives it", limit)
        if code < 0:
            raise Failed("run_error", f"it died of {signal.Signals(-code).name} while running")
        raise Failed("run_error", f"it exited with status {code} while running, without a result")

    def words(self) -> str:
        """The end of what it wrote to stderr, as far as a pipe holds it; it has ended."""
        os.set_blocking(self.stderr.fileno(), False)
        said = self.stderr.read(1 << 20) or b""
        return said.decode(errors="replace").replace("\0", "\ufffd").strip()[-8000:]

    def end(self) -> None:
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        stream: IO[bytes]
        for stream in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(OSError):
                stream.close()


class OutOfTheRace(Failed):
    """Its first call was ended since it was many times slower than the best."""


def confinement(limits: dict[str, Any], data: str, is_emulated: bool) -> str:
    """What a shell does before it becomes the program: the data as descriptor 3, and limits that the program
    cannot undo. They are set by the user that it runs as, since not every root may limit others."""
    lines = [
        'exec 3<"$1"; shift',
        f"ulimit -c 0; ulimit -f 0; ulimit -t {math.ceil(limits['run_seconds']) + 5}",
    ]
    if not is_emulated:  # an emulator needs memory and files of its own
        room = memory_for(limits) + os.path.getsize(data) + BESIDE_ARRAYS
        lines += [
            # Shells differ in the letter of this one.
            "if (ulimit -u 0) 2>/dev/null; then ulimit -u 0; "
            "elif (ulimit -p 0) 2>/dev/null; then ulimit -p 0; fi",
            f"ulimit -v {room >> 10}; ulimit -n 4",
        ]
    return "\n".join([*lines, 'exec "$@"'])


def memory_for(limits: dict[str, Any]) -> int:
    """What a candidate's arrays may take: the server's limit, and no more than a share of what is here."""
    wanted: int = limits["memory_bytes"]
    return min(wanted, int(MEMORY_SHARE * memory_of_this_device()))


def memory_of_this_device() -> int:
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def measure(child: Child, best: float | None) -> dict[str, Any]:
    """The fields of a result: checked first, then timed like every other worker's candidates."""
    longest = 0.0 if best is None else max(FIRST_SECONDS, FIRST_RATIO * best)
    try:
        first = struct.unpack("<q", child.ask(int(longest * 1e6), 1))[0] * 1e-9
    except OutOfTheRace:
        return {"seconds": longest, "samples": [longest], "censored": True}
    worst, bad, output, index, got, want, tolerance = struct.unpack("<dqqqddd", child.hear(7))
    if not worst <= 1.0:
        words = (
            f"parameter {output} is wrong at element {index}: got {got:.9g}, want {want:.9g} "
            f"within {tolerance:.3g}; {bad} elements are wrong"
        )
        raise Failed("wrong_output", words, error=worst if math.isfinite(worst) else None)
    samples, calls, censored = race(child, first, best)
    wrote, differs = struct.unpack("<qq", child.ask(0, 2))
    if wrote >= 0:
        raise Failed("wrong_output", f"the kernel wrote into its input, parameter {wrote}", error=worst)
    if differs >= 0:
        words = f"parameter {differs} differs between the first call and later ones"
        raise Failed("wrong_output", words, error=worst)
    return {"seconds": min(samples), "samples": samples, "censored": censored, "calls": calls, "error": worst}


def race(child: Child, first: float, best: float | None) -> tuple[list[float], int, bool]:
    """Samples, the calls of the last, and whether it was stopped since it was clearly slower."""
    if best is not None and first >= SAMPLE_SECONDS and first > COLD_RATIO * best:
        return [first], 1, True
    samples: list[float] = []
    total, calls = 0.0, enough(1, first)
    while True:
        wanted = CONTENDER_SECONDS
        if best is not None and samples and min(samples) > NEAR * best:
            wanted = ENOUGH_SECONDS
        if (len(samples) >= SAMPLES and total >= wanted) or len(samples) >= MOST_SAMPLES:
            return samples, calls, False
        known = len(samples)
        if best is not None and 0 < known <= 2 and min(samples) > CENSOR_RATIOS[known - 1] * best:
            return samples, calls, True
        elapsed = struct.unpack("<q", child.ask(calls, 1))[0] * 1e-9
        if elapsed >= SAMPLE_SECONDS:
            samples.append(elapsed / calls)
            total += elapsed
        elif calls >= MOST_CALLS:
            raise Failed("run_error", f"below the timer's resolution: {calls} calls took {elapsed:g} s")
        else:
            calls = enough(calls, elapsed)


def enough(calls: int, elapsed: float) -> int:
    """How many calls should fill a sample, given that `calls` took `elapsed` seconds."""
    wanted = calls * 100
    if elapsed > 0:
        wanted = min(wanted, int(calls * SAMPLE_SECONDS * 1.1 / elapsed) + 1)
    return min(max(wanted, calls + 1 if elapsed < SAMPLE_SECONDS else 1), MOST_CALLS)


# ---- the loop -----------------------------------------------------------------------------------------

DRAINING, STOPPED = threading.Event(), threading.Event()


def interrupt(*_: Any) -> None:
    if DRAINING.is_set():
        STOPPED.set()
    DRAINING.set()


class Runner:
    def __init__(self, server: Server, hello: dict[str, Any], prefix: list[str], folder: str) -> None:
        self.server = server
        self.hello = hello
        self.prefix = prefix
        self.folder = folder
        self.data: list[str] = []  # files by digest, the one used last at the end
        self.cancelled: set[str] = set()
        self.lost: Exception | None = None

    def run(self) -> int:
        registration = self.persist(lambda: self.server.post("/v1/workers", self.hello), ATTACH_SECONDS)
        if registration is None:
            return DRAINED
        self.server.identity = {"worker": registration["worker"], "session": self.hello["session"]}
        say("attached as {}".format(registration["worker"]))
        # A signal is noticed between two calls: they are short.
        wait = min(registration["wait_seconds"], 2.0)
        said = {"max_items": BATCH, "wait_seconds": wait}
        while not DRAINING.is_set():
            try:
                lease = self.persist(lambda: self.server.post("/v1/leases", said), OUTAGE_SECONDS)
            except Trouble as trouble:
                if trouble.status != 404 and trouble.code != "attach-again":
                    raise
                say(str(trouble))  # the server has forgotten this worker, or builds otherwise now
                self.server.identity = {}
                self.hello["session"] = secrets.token_hex(16)
                return self.run()
            if lease is not None:
                self.work(lease)
            elif self.server.told_to_drain:
                DRAINING.set()
            elif wait == 0:
                DRAINING.wait(0.2)
        self.leave()
        say("drained")
        return DRAINED

    def persist(self, action: Callable[[], Any], seconds: float) -> Any:
        """The answer of a call, made again while no server answers; None where this worker is to drain."""
        ends, pause = time.monotonic() + seconds, 0.2
        while True:
            try:
                return action()
            except Trouble as trouble:
                if trouble.code in FATAL:
                    raise Stop(FATAL[trouble.code], str(trouble)) from None
                if trouble.code:
                    raise
                if DRAINING.is_set() and time.monotonic() + pause < ends:
                    ends = min(ends, time.monotonic() + 5.0)  # a last result is still offered for a moment
                if time.monotonic() + pause > ends:
                    if DRAINING.is_set():
                        return None
                    raise Stop(UNREACHABLE, str(trouble)) from None
                say(f"{trouble}; trying again")
                STOPPED.wait(pause)
                pause = min(2 * pause, 5.0)

    def work(self, lease: dict[str, Any]) -> None:
        self.cancelled, self.lost = set(), None
        over = threading.Event()
        renewing = threading.Thread(target=self.renew, args=(lease, over), daemon=True)
        renewing.start()
        done = 0
        try:
            for item in lease["items"]:
                if DRAINING.is_set() or self.lost:
                    break
                if item["item"] not in self.cancelled:
                    self.one(lease, item)
                done += 1
        except Trouble as trouble:  # this lease is over: the next one may go better
            say("lease {}: {}".format(lease["lease"], trouble))
        finally:
            over.set()
            renewing.join()
            if done < len(lease["items"]):
                self.quietly("/v1/leases/{}:release".format(lease["lease"]))
        if isinstance(self.lost, Stop):
            raise self.lost

    def renew(self, lease: dict[str, Any], over: threading.Event) -> None:
        while not over.wait(lease["renew_seconds"]):
            try:
                self.hear(self.server.post("/v1/leases/{}:renew".format(lease["lease"]), {}))
            except Trouble as trouble:
                if trouble.code in FATAL:
                    self.lost = Stop(FATAL[trouble.code], str(trouble))
                elif trouble.code:
                    self.lost = trouble
                if self.lost:
                    return

    def hear(self, update: dict[str, Any]) -> None:
        self.cancelled.update(update["cancelled"])
        if update["drain"]:
            DRAINING.set()

    def one(self, lease: dict[str, Any], item: dict[str, Any]) -> None:
        place = "/v1/leases/{}".format(lease["lease"])
        self.server.trace = item.get("traceparent") or ""
        begun = time.monotonic()
        ready = self.fetched(item)
        if not isinstance(ready, Failed):
            said = {"item": item["item"], "attempt": item["attempt"]}
            self.persist(lambda: self.server.post(place + ":start", said), OUTAGE_SECONDS)
            came = self.measured(item, ready)
        else:
            came = {"failure": ready.failure}
        if came is None:
            return
        fields = {**came, "item": item["item"], "attempt": item["attempt"]}
        fields["wall_seconds"] = time.monotonic() - begun
        failure = fields.get("failure")
        say("{}: {}".format(item["item"], failure["message"] if failure else fields["seconds"]))
        update = self.persist(
            lambda: self.server.post(place + ":settle", {"results": [fields]}), OUTAGE_SECONDS
        )
        if update is not None:
            self.hear(update)

    def fetched(self, item: dict[str, Any]) -> tuple[str, str] | Failed:
        """The paths of program and data, or why there are none."""
        try:
            data = os.path.join(self.folder, item["data"]["sha256"])
            if data in self.data:
                self.data.remove(data)
            else:
                self.server.fetch(item["data"], data)
                os.chmod(data, 0o444)
            self.data.append(data)
            while len(self.data) > KEPT_DATA_FILES:
                os.unlink(self.data.pop(0))
            program = os.path.join(self.folder, "program")
            self.server.fetch(item["program"], program)
            os.chmod(program, 0o555)
            is_for, here = instruction_set(program), self.hello["hardware"]["architecture"]
            if is_for not in (None, here):
                os.unlink(program)
                words = f"the program is for {is_for}, another instruction set than this device's, {here}; "
                return Failed("run_error", words + "it was not run: submit the job for the device's target")
            return program, data
        except Trouble as trouble:
            if trouble.code in FATAL or not trouble.code:
                raise
            return Failed("run_error", str(trouble))

    def measured(self, item: dict[str, Any], ready: tuple[str, str]) -> dict[str, Any] | None:
        """The fields of a result; None of one that this worker gives back, as it is to stop."""
        program, data = ready
        child = None
        try:
            child = Child(self.prefix, program, data, item["limits"])
            return measure(child, item["best_seconds"])
        except Failed as failed:
            if STOPPED.is_set():
                return None
            failure = failed.failure
            if child is not None:
                child.end()
                elapsed = time.monotonic() - child.started
                failure = {**failure, "elapsed": elapsed, "last_words": child.words()}
            return {"failure": failure, "error": failed.error}
        finally:
            if child is not None:
                child.end()
                child.close()
            os.unlink(program)

    def leave(self) -> None:
        self.quietly("/v1/workers/{}:leave".format(self.server.identity["worker"]))

    def quietly(self, path: str) -> None:
        try:
            self.server.post(path, {})
        except Trouble as trouble:
            say(str(trouble))


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Not with argparse's own 2, which would say that no server answers."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="the server")
    parser.add_argument("--token-file", help="file with a token of scope worker")
    parser.add_argument("--name", default=platform.node() or "device", help="the worker's name")
    parser.add_argument("--label", action="append", default=[], help="key=value, shown with the worker")
    parser.add_argument("--work-dir", help="where programs are put, which must be allowed to run there")
    parser.add_argument("--insecure-http", action="store_true", help="send the token over plain http")
    parser.add_argument("--exec-prefix", default="", help="what runs the programs, such as an emulator")
    parser.add_argument(
        "--facts", help="JSON file with the facts of the device that --exec-prefix stands for"
    )
    parser.add_argument("--probe", action="store_true", help="print the facts of this device and end")
    said = parser.parse_args(arguments)
    try:
        return start(said)
    except Stop as stop:
        say(f"tilewright_runner: {stop}")
        return stop.code
    except Trouble as trouble:
        say(f"tilewright_runner: {trouble}")
        return FAILED


def start(said: argparse.Namespace) -> int:
    prefix = shlex.split(said.exec_prefix)
    if prefix:
        found = shutil.which(prefix[0])
        if found is None:
            raise Stop(SETTING, f"the emulator {prefix[0]} is not there, or no program")
        prefix[0] = found
    for label in said.label:
        if not label.partition("=")[0] or "=" not in label:
            raise Stop(USAGE, f"--label must be key=value, got {label!r}")
    if bool(prefix) != bool(said.facts):
        raise Stop(
            USAGE, "--exec-prefix and --facts go together: this device's own facts are not an emulated one's"
        )
    facts = facts_of_this_device()
    if said.facts:
        facts = facts_of_file(said.facts)
        # Times of an emulator must never be taken for those of the device itself.
        facts["vendor"] = "emulated by {}: {}".format(os.path.basename(prefix[0]), facts.get("vendor"))
    if said.probe:
        print(json.dumps({"hardware_key": hardware_key(facts), "hardware": facts}, indent=2))
        return DRAINED
    if said.url is None or said.token_file is None:
        raise Stop(USAGE, "--url and --token-file are needed")
    url = urlsplit(said.url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise Stop(USAGE, f"{said.url!r} is no server's URL")
    if (
        url.scheme == "http"
        and url.hostname not in ("127.0.0.1", "localhost", "::1")
        and not said.insecure_http
    ):
        raise Stop(UNAUTHORIZED, "refusing to send the token over http: use https, or --insecure-http")
    try:
        with open(said.token_file) as file:
            token = file.read().strip()
    except OSError as error:
        raise Stop(SETTING, f"the token file {said.token_file} cannot be read: {error.strerror}") from None
    hello = {
        "name": said.name,
        "session": secrets.token_hex(16),
        "hardware_key": hardware_key(facts),
        "hardware": facts,
        "versions": {"runner": VERSION, "python": platform.python_version()},
        "labels": dict(label.split("=", 1) for label in said.label),
        "run_only": True,
    }
    try:
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which children inherit
    except (OSError, AttributeError):
        say("this system has no no_new_privs")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    with contextlib.ExitStack() as held:
        for processor in sorted(os.sched_getaffinity(0)):
            held.enter_context(lock_of(processor, said.name))
        parent = said.work_dir or tempfile.gettempdir()
        try:
            clean(parent)
            folder = tempfile.mkdtemp(prefix=FOLDERS, dir=parent)
        except OSError as error:
            raise Stop(SETTING, f"programs cannot be put into {parent}: {error.strerror}") from None
        try:
            lock = held.enter_context(open(os.path.join(folder, "lock"), "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.chmod(folder, 0o755)  # an unprivileged child runs what lies there
            if prefix:
                check_emulator(prefix, facts, said.facts, folder)
            return Runner(Server(said.url, token), hello, prefix, folder).run()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def facts_of_file(path: str) -> dict[str, Any]:
    """Hardware facts as --probe prints them, or these alone without the key around them."""
    try:
        with open(path) as file:
            facts = json.load(file)
    except (OSError, ValueError) as error:
        raise Stop(SETTING, f"the facts in {path} cannot be read: {error}") from None
    if isinstance(facts, dict) and isinstance(facts.get("hardware"), dict):
        facts = facts["hardware"]
    if not isinstance(facts, dict) or not isinstance(facts.get("architecture"), str):
        raise Stop(SETTING, f"{path} holds no hardware facts as --probe prints them: no architecture")
    return facts


def lock_of(processor: int, name: str) -> IO[str]:
    """The lock of a processor that workers of this machine share (measure/device_lock.py). It is let go of
    with the file, or the end of this process."""
    shared = next((f for f in LOCK_FOLDERS if os.access(f, os.W_OK | os.X_OK)), LOCK_FOLDERS[-1])
    folder = os.environ.get("TILEWRIGHT_LOCK_FOLDER") or os.path.join(shared, LOCKS)
    path = os.path.join(folder, f"cpu{processor}")
    try:
        if not os.path.isdir(folder):
            os.mkdir(folder)
            os.chmod(folder, 0o1777)
        file = open_lock(path)
    except OSError as error:
        raise Stop(SETTING, f"the lock {path} cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        words = f"processor {processor} of this machine is in use by another worker ({path} says which): "
        raise Stop(BUSY, words + "end that one, or start this one on other processors with taskset") from None
    with contextlib.suppress(OSError):  # in vain where the file is another user's
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "worker": name[:128]}))
        file.flush()
    return file


def open_lock(path: str) -> IO[str]:
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    for access in (os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            return os.fdopen(os.open(path, access | flags), "r+" if access == os.O_RDWR else "r")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
    os.fchmod(descriptor, 0o666)
    return os.fdopen(descriptor, "r+")


def clean(parent: str) -> None:
    """Removes the folders of runners that were killed: nobody holds their locks any more."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        if name.startswith(FOLDERS):
            with contextlib.suppress(OSError), open(os.path.join(folder, "lock")) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
