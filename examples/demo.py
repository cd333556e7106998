"""The main job, end to end: a server, a measurement worker, two layers of real networks tuned over HTTP, and
compiled.

Run by `make demo`. Everything lives in a temporary folder and ends with the program. `--trials N` sets the
budget of each layer.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from tilewright.compiler import topi
from tilewright.compiler.schedule import Trace
from tilewright.service.cli.progress import follow, speed
from tilewright.service.client import Client

LAYERS: dict[str, dict[str, Any]] = {
    "ResNet-50: conv2d 1x64x56x56 -> 64, 3x3, pad 1, bias, relu (NCHW)": {
        "op": "conv2d",
        "ci": 64,
        "h": 56,
        "w": 56,
        "co": 64,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "bias": True,
        "activation": "relu",
    },
    "BERT-base: dense 128x768 -> 3072, bias, gelu": {
        "op": "dense",
        "m": 128,
        "n": 3072,
        "k": 768,
        "bias": True,
        "activation": "gelu",
    },
}
TILEWRIGHT = str(Path(sys.executable).parent / "tilewright")
COMPARE = str(Path(__file__).with_name("compare.py"))
START_SECONDS = 30.0
SETTINGS = {
    # A machine that also does other things need not prove that it stays steady: it is looked at once.
    "TILEWRIGHT_GOLDEN_PROCESSES": "3",
    "TILEWRIGHT_GOLDEN_EVERY": "0",
}
"""What the demo's server does otherwise than by default."""

out = Console(width=None if sys.stdout.isatty() else 160, highlight=False, soft_wrap=True)


@contextmanager
def process(log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child whose output goes to a file; told to end, then made to, when the block is left."""
    with log.open("wb") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            env={**os.environ, **SETTINGS},
        )
        try:
            yield child
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def started(child: subprocess.Popen[bytes], ready: Path, log: Path) -> str:
    """The URL in the file that the server writes once it accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if ready.exists() and (url := ready.read_text().strip()):
            return url
        if child.poll() is not None:
            break
        time.sleep(0.05)
    raise SystemExit(f"the server did not start; it said:\n{log.read_text()}")


def step(n: int, text: str) -> None:
    out.print(f"\n[bold]{n}. {text}[/bold]", markup=True)


def tune(client: Client, title: str, layer: dict[str, Any], trials: int) -> Any:
    """Submits one job and follows it to its end."""
    out.print(f"\n{title}")
    job = client.submit(layer, trials=trials)
    out.print(
        f"submitted as {job.id}; watch it elsewhere with: tilewright jobs watch {job.id} --url {client.url}"
    )
    job = follow(client, job.id)
    if job.best is None:
        raise SystemExit(f"{job.id} ended as {job.state} without a schedule: {job.reason}")
    out.print(f"{job.state}: best {speed(job.progress.best_seconds or 0, job.progress.best_gflops)}")
    return job


def show(title: str, layer: dict[str, Any], trace: Trace) -> None:
    """The schedule as Python, and the loop nest before and after."""
    func = topi.create(layer)
    scheduled = trace.apply(func)
    out.print(f"\n{title}\n\nThe best schedule, as Python:\n", markup=False)
    out.print("sch = tw.Schedule(func)\n" + scheduled.trace.script(), markup=False)
    out.print("The loop nest before:\n", markup=False)
    out.print(str(func), markup=False)
    out.print("… and after:\n", markup=False)
    out.print(str(scheduled), markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--trials", type=int, default=64, help="measured candidates for each layer (default 64)"
    )
    trials = parser.parse_args().trials
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tilewright-demo-")))
        db = f"sqlite:///{folder}/demo.db"
        step(1, "A server: SQLite file, loopback, a free port")
        ready, log = folder / "url", folder / "server.log"
        command = [
            TILEWRIGHT,
            "serve",
            "--db",
            db,
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--ready-file",
            str(ready),
        ]
        server = stack.enter_context(process(log, *command))
        url = started(server, ready, log)
        out.print(f"$ tilewright serve --db {db} --port 0\n{url}")

        step(2, "A measurement worker: a separate process, over HTTP, with a token")
        token = folder / "token"
        create = [TILEWRIGHT, "token", "create", "--db", db, "--scope", "worker", "--name", "demo"]
        token.write_bytes(subprocess.run(create, check=True, capture_output=True).stdout)
        token.chmod(0o600)
        log = folder / "worker.log"
        run = [TILEWRIGHT, "worker", "run", "--url", url, "--token-file", str(token), "--name", "demo"]
        worker = stack.enter_context(process(log, *run))
        out.print(f"$ {' '.join(['tilewright', *run[1:]])}")

        with Client(url) as client:
            step(3, "Two tuning jobs over HTTP")
            jobs = {title: tune(client, title, layer, trials) for title, layer in LAYERS.items()}
            step(4, "What was found")
            for title, job in jobs.items():
                show(title, LAYERS[title], Trace.from_json(job.best.trace))

        step(5, "Compiled in a fresh process: tilewright.build(…, schedules=tilewright.connect(url))")
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        compared = subprocess.run([sys.executable, COMPARE, url], env={**clean, **one_thread}, check=False)
        if compared.returncode:
            raise SystemExit("a compiled layer is wrong or was not found")
        if worker.poll() is not None:
            raise SystemExit(f"the worker ended early; it said:\n{log.read_text()}")
    out.print(f"\nDone in {time.monotonic() - begun:.0f} s.")


if __name__ == "__main__":
    main()
