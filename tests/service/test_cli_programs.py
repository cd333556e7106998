"""Commands that need the compiler, as a user runs them: as processes."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from service_harness import ENVIRONMENT

from tilewright.compiler.target import detect
from tilewright.db import open_store

MAIN = "from tilewright.service.cli import main; main()"
TOKEN = {"TILEWRIGHT_TOKEN": "a-token"}
LAYER = '{"op": "dense", "m": 16, "n": 32, "k": 48}'
SCRIPT = """
from tilewright import te

def small():
    a = te.placeholder((8, 8), "float32", name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] + a[i, j], name="B")
    return te.create_prim_func([a, b], name="twice")

def wrong():
    return 5
"""


def _tilewright(
    *arguments: str, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env={**ENVIRONMENT, **environment},
    )


class _Elsewhere(BaseHTTPRequestHandler):
    """Another program's HTTP server."""

    server_version = "Elsewhere/1"
    sys_version = ""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        return


@contextlib.contextmanager
def _elsewhere() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_without_a_place_to_write_ends_with_2_naming_the_file_and_where_it_was_said(
    tmp_path: Path,
) -> None:
    db = tmp_path / "nowhere" / "t.db"
    by_flag = _tilewright("serve", "--db", f"sqlite:///{db}")
    by_name = _tilewright("serve", TILEWRIGHT_DB=f"sqlite:///{db}")
    words = f"tilewright: {db}: there is no directory {db.parent} (setting db, "
    assert [(e.returncode, e.stdout, e.stderr) for e in (by_flag, by_name)] == [
        (2, "", words + "flag)\n"),
        (2, "", words + "environment TILEWRIGHT_DB)\n"),
    ]


def test_a_worker_at_a_closed_port_ends_with_2_naming_what_it_tried() -> None:
    url = _closed()
    ended = _tilewright("worker", "run", "--url", url, "--attach-seconds", "0.5", **TOKEN)
    words = f"nothing answers at {url}: [Errno 111] Connection refused"
    assert (ended.returncode, ended.stdout, ended.stderr.splitlines()[-1]) == (2, "", words)


def test_a_worker_at_something_else_ends_with_2_saying_what_it_found() -> None:
    with _elsewhere() as url:
        ended = _tilewright("worker", "run", "--url", url, **TOKEN)
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        2,
        "",
        f"tilewright: expected a tilewright service at {url}, found an HTTP server (Elsewhere/1) that "
        "answers 404 with text/html at /version\n",
    )


def test_a_worker_with_a_token_file_that_is_not_there_ends_with_6() -> None:
    ended = _tilewright("worker", "run", "--token-file", "/nonexistent/token")
    assert (ended.returncode, ended.stderr) == (
        6,
        "tilewright: the token file /nonexistent/token cannot be read: No such file or directory\n",
    )


def test_a_label_that_is_none_ends_with_64() -> None:
    ended = _tilewright("worker", "probe", "--label", "rack")
    assert (ended.returncode, ended.stderr) == (
        64,
        "tilewright: --label 'rack' is not of the form key=value\n",
    )


def test_probing_shows_what_a_worker_would_say() -> None:
    probed = _tilewright("worker", "probe", "--name", "rpi4-07", "--label", "board=rpi4", "--json")
    said = json.loads(probed.stdout)
    machine = detect()
    assert (probed.returncode, said["name"], said["labels"], said["hardware_key"]) == (
        0,
        "rpi4-07",
        {"board": "rpi4"},
        machine.key,
    )


def test_tuning_here_prints_the_schedule_and_records_it_for_best(tmp_path: Path) -> None:
    db = f"sqlite:///{tmp_path}/here.db"
    tuned = _tilewright("tune", LAYER, "--trials", "3", "--db", db)
    found = _tilewright("best", LAYER, "--db", db)
    header, model, time, script = tuned.stdout.split("\n", 3)
    assert (tuned.returncode, "sch.get_block" in script) == (0, True)
    assert re.fullmatch(r"# .* µs, .* after 3 trials: all 3 trials of the budget are done", header)
    assert (model, time[:8]) == ("# cost model: nothing was predicted", "# time: ")
    assert (found.returncode, found.stdout.split("\n", 1)[1]) == (0, script)


def test_a_function_of_a_file_is_tuned(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(SCRIPT)
    tuned = _tilewright("tune", "kernels.py:small", "--trials", "2", "--json", folder=tmp_path)
    record = json.loads(tuned.stdout)
    assert (tuned.returncode, record["trial_count"] >= 1, record["seconds"] > 0) == (0, True, True)


@pytest.mark.slow
def test_several_workloads_are_tuned_with_one_budget(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(SCRIPT)
    tasks = [{"workload": json.loads(LAYER), "weight": 3}, {"workload": "kernels.py:small", "name": "copy"}]
    (tmp_path / "net.json").write_text(json.dumps(tasks))
    matmul = '{"op": "matmul", "m": 8, "n": 8, "k": 8, "dtype": "float32"}'
    tuned = _tilewright("tune-tasks", "net.json", matmul, "--trials", "12", "--json", folder=tmp_path)
    record = json.loads(tuned.stdout)
    assert (tuned.returncode, record["trial_count"], record["reason"]) == (
        0,
        12,
        "all 12 trials of the budget of all tasks are done",
    )
    assert [(task["name"], task["weight"], task["seconds"] > 0) for task in record["tasks"]] == [
        ("dense", 3, True),
        ("copy", 1.0, True),
        ("matmul", 1.0, True),
    ]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("[1]", "net.json: task 0: expected an object with a 'workload' that is an operator or file.py:fun"),
        (
            '[{"workload": {}, "wait": 1}]',
            "net.json: task 0: unknown key 'wait'; known: workload, name, ",
        ),
        ('[{"workload": {}, "weight": "2"}]', 'net.json: task 0: weight is a number, not "2"'),
        ('[{"workload": {}, "trials": 1.5}]', "net.json: task 0: trials is an integer, not 1.5"),
        ("[", "net.json: not JSON: Expecting value"),
        ("[]", "there is no task to tune"),
    ],
)
def test_a_list_of_tasks_that_is_none_ends_with_64(tmp_path: Path, tasks: str, message: str) -> None:
    (tmp_path / "net.json").write_text(tasks)
    ended = _tilewright("tune-tasks", "net.json", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (64, "")
    assert ended.stderr.startswith(f"tilewright: {message}")


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ('{"op": "mathmul"}', "workload: unknown operator 'mathmul'; known: matmul"),
        ("{", "workload: not JSON: Expecting property name enclosed in double quotes"),
        ('{"op": ' + 5000 * "9" + "}", "workload: not JSON: Exceeds the limit (4300 digits)"),
        ('{"op": ' + 50_000 * "[", "workload: not JSON: maximum recursion depth exceeded"),
        ("matmul", "workload 'matmul' is neither JSON (it would begin with a brace), nor file.py:function"),
        (
            "kernels.py:tiny",
            "workload 'kernels.py:tiny': kernels.py has no function 'tiny'; it has small, wrong",
        ),
        ("kernels.py:wrong", "workload 'kernels.py:wrong': wrong returned int, expected a PrimFunc"),
        ("nothing.py:f", "workload 'nothing.py:f': there is no file nothing.py"),
    ],
)
def test_a_workload_that_is_none_ends_with_64(tmp_path: Path, workload: str, message: str) -> None:
    (tmp_path / "kernels.py").write_text(SCRIPT)
    ended = _tilewright("best", workload, "--db", "sqlite:///x.db", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (64, "")
    assert ended.stderr.startswith(f"tilewright: {message}")


def test_a_function_that_a_file_does_not_have_is_answered_with_those_it_defines(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(f"from collections import OrderedDict\n{SCRIPT}")
    ended = _tilewright("tune", "kernels.py:zzz", folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (
        64,
        "tilewright: workload 'kernels.py:zzz': kernels.py has no function 'zzz'; it has small, wrong\n",
    )


def test_looking_a_schedule_up_makes_no_database(tmp_path: Path) -> None:
    ended = _tilewright("best", LAYER, "--db", "sqlite:///x.db", folder=tmp_path)
    assert (ended.returncode, ended.stderr, list(tmp_path.iterdir())) == (
        1,
        "tilewright: no schedule is known for dense: x.db: there is no such database\n",
        [],
    )


def test_where_no_schedule_is_known_best_ends_with_1(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/x.db").close()
    ended = _tilewright("best", LAYER, "--db", "sqlite:///x.db", folder=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        1,
        "",
        "tilewright: no schedule is known for dense at sqlite:///x.db; `tilewright tune` finds one\n",
    )


def test_an_unknown_target_ends_with_64(tmp_path: Path) -> None:
    ended = _tilewright("tune", LAYER, "--target", "vax", folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (
        64,
        "tilewright: no code generator for 'vax'; registered: c, llvm; to add one: install a package with an "
        "entry point 'vax' in the group 'tilewright.backends'\n",
    )


def test_serving_prints_the_url_alone_on_stdout_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--port", "0", "--ready-file", "url"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "url").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        url = (tmp_path / "url").read_text().strip()
        version = httpx.get(f"{url}/version", trust_env=False).json()["service"]
    finally:
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=15)
    assert (version, server.returncode, out) == ("tilewright", 0, f"{url}\n")
    assert err == f"tilewright serves sqlite:///tilewright.db at {url}\n"


def test_serving_at_a_port_that_is_taken_ends_with_1_naming_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ended = _tilewright("serve", "--port", str(port), folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (
        1,
        f"tilewright: cannot listen at 127.0.0.1:{port}: Address already in use\n",
    )
