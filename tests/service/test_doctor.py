"""The doctor of workers: each step's own error, and the exit code that a worker would end with."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from service_harness import Api, attach

from tilewright.measure.device_lock import DeviceLock
from tilewright.measure.exits import Exit
from tilewright.measure.self_test import protections, timer_resolution
from tilewright.service.cli import run
from tilewright.service.doctor import Finding, Step, Trouble, Warned, examine, exit_of_findings
from tilewright.service.doctor_machine import MachineSteps
from tilewright.service.doctor_network import NetworkSteps
from tilewright.service.settings import Settings
from tilewright.service.worker_setup import WorkerSetup


def fails(code: int, message: str = "it is broken") -> Callable[[], str]:
    def look() -> str:
        raise Trouble(message, code)

    return look


def test_a_step_that_stands_on_a_failed_one_is_skipped_and_the_others_are_tried() -> None:
    steps = [
        Step("a", fails(3)),
        Step("b", lambda: "well", ("a",)),
        Step("c", lambda: Warned("so so"), ("b",)),
        Step("d", lambda: "well"),
    ]
    assert [(f.name, f.status, f.detail, f.exit) for f in examine(steps)] == [
        ("a", "failed", "it is broken", 3),
        ("b", "skipped", "it stands on: a", 0),
        ("c", "skipped", "it stands on: b", 0),
        ("d", "ok", "well", 0),
    ]


def test_a_warning_ends_nothing_and_the_first_failure_decides() -> None:
    warning, first, second = (
        Finding("a", "warning", ""),
        Finding("b", "failed", "", 3),
        Finding("c", "failed", "", 2),
    )
    assert [exit_of_findings(f) for f in ([], [warning], [warning, first, second])] == [0, 0, 3]


def examined(url: str, token: str | None, name: str = "rig") -> dict[str, Finding]:
    with closing(NetworkSteps(url, token, insecure_http=False, timeout=5.0, name=name)) as network:
        steps = [Step("token", lambda: "there"), *network.steps()]
        return {finding.name: finding for finding in examine(steps)}


def failure(url: str, token: str | None = "tw_x") -> tuple[str, str, int]:
    """The first step that fails, what it says, and the exit code."""
    found = next(f for f in examined(url, token).values() if f.status == "failed")
    return found.name, found.detail, found.exit


@contextmanager
def speaking(words: bytes) -> Iterator[str]:
    """A TCP server that says something and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            listener.settimeout(0.1)
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.sendall(words)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def test_a_worker_that_can_attach_passes_every_step(api: Api) -> None:
    secret = api.store.create_token("lab", ["worker"], "lab-b")[1]
    found = examined(api.url, secret)
    assert {finding.status for finding in found.values()} == {"ok"}
    assert (found["token accepted"].detail, found["protocol"].detail) == (
        "'lab', scope worker, pool lab-b, does not expire",
        "2, and the server's 2",
    )


def test_a_name_that_leads_nowhere_is_told_by_the_resolver() -> None:
    name, words, code = failure("http://no-such-host.invalid:8470")
    assert (name, words.startswith("the name 'no-such-host.invalid' leads nowhere: "), code) == (
        "address",
        True,
        2,
    )


def test_a_closed_port_is_told_by_its_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert failure(f"http://127.0.0.1:{port}") == (
        "connection",
        f"nothing answers at 127.0.0.1:{port}: [Errno 111] Connection refused",
        2,
    )


def test_something_that_speaks_no_http_is_not_the_server(api: Api) -> None:
    with speaking(b"220 mail.example ESMTP\r\n") as url:
        name, words, code = failure(url)
    assert (name, words.endswith("; its server is not up, or does not speak HTTP"), code) == (
        "server",
        True,
        2,
    )


def test_a_server_without_encryption_is_not_https(api: Api) -> None:
    name, words, code = failure(api.url.replace("http://", "https://"))
    assert (name, words.startswith("no trusted encryption at 127.0.0.1:"), code) == ("encryption", True, 2)


def test_a_token_that_would_travel_in_the_clear_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = NetworkSteps("http://tune.example:8470", "tw_x", insecure_http=False, timeout=1.0)
    with pytest.raises(Trouble, match=r"refusing to send the token over http to tune\.example") as trouble:
        steps.server()
    assert trouble.value.code == Exit.UNAUTHORIZED


def test_a_wrong_token_is_refused_by_the_server(api: Api) -> None:
    name, words, code = failure(api.url, "tw_wrong")
    assert (name, words.startswith("the token is unknown, revoked or expired"), code) == (
        "token accepted",
        True,
        3,
    )


def test_a_token_of_another_scope_is_not_a_workers(api: Api) -> None:
    secret = api.store.create_token("t", ["jobs:write"])[1]
    assert failure(api.url, secret) == (
        "token accepted",
        "token 't' has scope jobs:write: a worker needs worker",
        3,
    )


def test_a_token_that_expires_soon_is_a_warning(api: Api) -> None:
    found = examined(api.url, api.store.create_token("t", ["worker"], None, 3600.0)[1])["token accepted"]
    assert (found.status, found.detail) == (
        "warning",
        "'t', scope worker, expires in 1.0 h; a worker ends with 3 then",
    )


def test_a_token_can_be_asked_what_it_is(api: Api) -> None:
    answer = api.http.get("/v1/token", headers=api.token("jobs:write")).json()
    assert (answer["token"]["scopes"], abs(answer["now"] - api.store.now()) < 60) == (["jobs:write"], True)
    assert "value" not in answer["token"]
    assert api.http.get("/v1/token").status_code == 401


@pytest.mark.parametrize("protocol", [0, 1, 4, None, "two"])
def test_a_server_of_another_protocol_is_not_one_for_this_worker(protocol: Any) -> None:
    steps = NetworkSteps("http://127.0.0.1:1", None, insecure_http=False, timeout=1.0)
    steps._said = {"protocol": protocol}
    with pytest.raises(Trouble) as trouble:
        steps.protocol()
    assert trouble.value.code == Exit.VERSION_REFUSED


def test_a_name_that_was_removed_is_refused_and_one_that_is_attached_is_warned_of(api: Api) -> None:
    def name_step() -> Finding:
        return examined(api.url, api.store.create_token("t", ["worker"])[1], "w 1")["name"]

    assert (name_step().status, name_step().detail) == ("ok", "'w 1' is new to the server")
    attach(api.store, "w 1")
    assert (name_step().status, name_step().detail) == (
        "warning",
        "'w 1' is registering: it has not asked for work yet; "
        "a worker that attaches under it ends the session that has it",
    )
    api.store.remove_worker(api.store.find_worker("w 1").id, "token ops", "sold")
    assert (name_step().status, name_step().detail, name_step().exit) == (
        "failed",
        "'w 1' is retired: removed by token ops: sold; a removed name is not used again, choose another",
        Exit.SETTINGS,
    )


def setup_of(tmp_path: Path, **settings: Any) -> WorkerSetup:
    return WorkerSetup.of(Settings(lock_folder=str(tmp_path / "locks"), **settings))


def test_a_device_that_another_worker_has_is_told_with_its_holder(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, worker_name="rig-1")
    with DeviceLock(setup.device, "rig-0", tmp_path / "locks").acquire():
        with pytest.raises(Trouble, match="is in use by the worker 'rig-0', process") as trouble:
            MachineSteps(setup).device()
        assert trouble.value.code == Exit.DEVICE_BUSY
        waiting = MachineSteps(setup_of(tmp_path, worker_wait_for_device=True)).device()
    assert isinstance(waiting, Warned) and waiting.message.endswith("; a worker would wait for it")


def test_looking_at_a_device_does_not_keep_it(tmp_path: Path) -> None:
    setup = setup_of(tmp_path)
    MachineSteps(setup).device()
    with setup.lock().acquire():
        pass


@pytest.mark.parametrize(
    ("governor", "boost", "status"),
    [("performance", "0", "ok"), ("powersave", "0", "warning"), ("performance", "1", "warning")],
)
def test_a_frequency_that_changes_is_a_warning(
    tmp_path: Path, governor: str, boost: str, status: str
) -> None:
    for path, text in (("cpu0/cpufreq/scaling_governor", governor), ("cpufreq/boost", boost)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    found = MachineSteps(setup_of(tmp_path), cpu=tmp_path).governor()
    assert ("warning" if isinstance(found, Warned) else "ok") == status


def test_every_protection_of_a_candidate_is_seen_from_within() -> None:
    found = protections()
    assert found.missing == []
    assert (found.limits["file size"], found.limits["core files"], found.limits["processes"]) == (0, 0, 0)
    assert (found.no_new_privs, found.own_group, found.descriptors) == (True, True, (0, 1, 2, 3))


def test_the_clock_of_the_processor_moves_in_small_steps() -> None:
    assert 0 < timer_resolution() < 0.02


def test_the_doctor_says_what_a_worker_would_end_with(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(api.store.create_token("lab", ["schedules:read"])[1])
    file.chmod(0o644)
    monkeypatch.setenv("TILEWRIGHT_TOKEN_FILE", str(file))
    monkeypatch.setenv("TILEWRIGHT_URL", api.url)
    code = run(["worker", "doctor", "--name", "rig", "--json"])
    said = json.loads(capsys.readouterr().out)
    steps = {step["step"]: step for step in said["steps"]}
    assert (code, said["exit"]) == (3, 3)
    assert steps["token"]["status"] == "warning"
    assert steps["token"]["detail"] == f"read from {file}, mode 644: others may read it, let it be 600"
    assert steps["token accepted"]["status"] == "failed"
    assert steps["kernel"]["status"] == "ok"
    settings = steps["settings"]["detail"]
    assert f"url={api.url} (environment TILEWRIGHT_URL)" in settings and "worker_name=rig (flag)" in settings
    assert file.read_text() not in json.dumps(said)


def test_a_setting_that_is_wrong_is_the_doctors_first_finding(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["worker", "doctor", "--device", "cpu:90000"])
    assert (
        code,
        capsys.readouterr().out.splitlines()[0].startswith("FAILED   settings: worker_device:"),
    ) == (
        6,
        True,
    )
