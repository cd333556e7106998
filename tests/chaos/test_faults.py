"""The faults of a chaos run do what they say."""

from __future__ import annotations

import errno
import http.server
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def beside_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"ttl_seconds": 6}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def proxy() -> Iterator[Any]:
    from ledger import Ledger
    from proxy import Proxy

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        ledger = Ledger()
        with Proxy(ledger, seed=1) as made:
            made.upstream = api.server_address[1]
            made.ledger = ledger
            yield made
        api.shutdown()


def settle(proxy: Any, trial: str = "j.0") -> str:
    """What came of one settlement through the proxy."""
    said = {"results": [{"item": trial, "attempt": 1}]}
    try:
        return httpx.post(f"{proxy.url}/v1/leases/l:settle", json=said, timeout=5, trust_env=False).text
    except httpx.TransportError as error:
        return type(error).__name__


def test_in_calm_weather_an_answer_is_delivered_and_noted(proxy: Any) -> None:
    assert settle(proxy) == '{"ttl_seconds": 6}'
    assert list(proxy.ledger.settled) == [("j.0", 1)]


def test_a_dropped_connection_reaches_no_server(proxy: Any) -> None:
    proxy.set("drop")
    assert settle(proxy) in ("ReadError", "RemoteProtocolError", "ConnectError")
    assert proxy.ledger.settled == {}


def test_an_answer_that_is_cut_was_given_all_the_same(proxy: Any) -> None:
    proxy.set("cut")
    came = {f"j.{n}": settle(proxy, f"j.{n}") for n in range(20)}
    assert [trial for trial, _ in proxy.ledger.settled] == list(came)
    assert 0 < sum("ttl" not in said for said in came.values()) < 20


def test_a_stalled_message_goes_on_when_the_weather_is_calm(proxy: Any) -> None:
    proxy.set("stall")
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(settle(proxy)))
    thread.start()
    time.sleep(0.3)
    assert proxy.ledger.settled == {}
    proxy.set("calm")
    thread.join()
    assert got == ['{"ttl_seconds": 6}']


def test_a_clock_jumps_in_a_process_that_runs(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    program = "import time\nwhile input(): print(time.time(), time.monotonic(), flush=True)"
    environment = {"PYTHONPATH": str(HERE / "clock"), "CHAOS_CLOCK": str(clock)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def clocks() -> tuple[float, float]:
            process.stdin.write("go\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            wall, monotonic = map(float, process.stdout.readline().split())  # type: ignore[union-attr]
            return wall - time.time(), monotonic - time.monotonic()

        before = clocks()
        clock.write_text("-86400")
        after = clocks()
        process.stdin.write("\n")
    assert before[0] > -3600
    assert after[0] < -80000
    assert after[1] > -3600


def test_a_full_disk_takes_nothing_until_there_is_room(tmp_path: Path) -> None:
    from disk import SmallDisk

    with SmallDisk(tmp_path / "small") as disk:
        if disk.reason:
            pytest.skip(disk.reason)
        disk.fill()
        with pytest.raises(OSError) as refused, (disk.folder / "log").open("wb", buffering=0) as file:
            file.write(b"a line\n")
        disk.free()
        (disk.folder / "log").write_bytes(b"a line\n")
    assert refused.value.errno == errno.ENOSPC
    assert list((tmp_path / "small").iterdir()) == []
