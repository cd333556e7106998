from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.measure.device import Device, DeviceError
from tilewright.measure.device_lock import DeviceBusy, DeviceLock, lock_folder
from tilewright.measure.errors import MeasureError
from tilewright.measure.processors import allowed

HOLD = """
import sys, time
from pathlib import Path
from tilewright.measure.device import Device
from tilewright.measure.device_lock import DeviceLock
with DeviceLock(Device(frozenset({7, 8})), "rig-1", Path(sys.argv[1])).acquire():
    print("held", flush=True)
    time.sleep(60)
"""


def device(*processors: int) -> Device:
    return Device(frozenset(processors))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the processors 7 and 8."""
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "locks")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_device_is_all_processors_that_may_be_used_unless_some_are_named() -> None:
    assert Device.parse("cpu") == Device(allowed())


def test_a_device_of_some_processors_has_a_name_of_its_own() -> None:
    one = min(allowed())
    assert Device.parse(f"cpu:{one}") == Device(frozenset({one}), f"cpu{one}")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("gpu:0", "'gpu:0' is no device; expected cpu, or some processors of it, such as cpu:0-3,8"),
        ("cpu:", "'cpu:' is no device; expected cpu, or some processors of it, such as cpu:0-3,8"),
        ("cpu:a", "'cpu:a': 'a' is neither a processor's number nor a range of them, such as 0-3"),
        ("cpu:3-1", "'cpu:3-1': '3-1' is neither a processor's number nor a range of them, such as 0-3"),
        ("cpu:0,", "'cpu:0,': '' is neither a processor's number nor a range of them, such as 0-3"),
        ("cpu:-1", "'cpu:-1': '-1' is neither a processor's number nor a range of them, such as 0-3"),
    ],
)
def test_what_is_no_device_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(DeviceError) as refused:
        Device.parse(text)
    assert str(refused.value) == complaint


def test_processors_that_are_not_there_are_named_beside_those_that_are() -> None:
    with pytest.raises(DeviceError, match="names the processors 90000-90002, and this process may use "):
        Device.parse("cpu:90000-90002")


def test_a_pinned_process_and_its_children_keep_to_the_device() -> None:
    one = min(allowed())
    program = (
        "import os, subprocess, sys\n"
        "from tilewright.measure.device import Device\n"
        "Device.parse(sys.argv[1]).pin()\n"
        "print(subprocess.run([sys.executable, '-c', 'import os; print(os.sched_getaffinity(0))'],"
        " capture_output=True, text=True).stdout)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, f"cpu:{one}"]
    assert subprocess.run(command, capture_output=True, text=True, env=env).stdout.strip() == str({one})


def test_two_workers_of_one_machine_share_no_processor(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(DeviceBusy) as busy:
        DeviceLock(device(6, 7), "rig-2", tmp_path / "locks").acquire()
    assert (
        str(busy.value)
        == f"processor 7 of this machine is in use by the worker 'rig-1', process {holder.pid}"
    )


def test_what_was_locked_before_the_one_that_is_not_free_is_given_back(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(DeviceBusy):
        DeviceLock(device(6, 7), "rig-2", tmp_path / "locks").acquire()
    with DeviceLock(device(6), "rig-3", tmp_path / "locks").acquire():
        pass


def test_other_processors_are_free(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with DeviceLock(device(5, 6), "rig-2", tmp_path / "locks").acquire():
        pass


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with DeviceLock(device(7, 8), "rig-2", tmp_path / "locks").acquire():
        pass


def test_a_worker_may_wait_for_its_device(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    said: list[str] = []

    def sleep(_: float) -> None:
        holder.kill()
        holder.wait()

    lock = DeviceLock(device(7), "rig-2", tmp_path / "locks")
    assert lock.wait(60.0, lambda: False, said.append, sleep=sleep)
    lock.release()
    assert said == [
        f"processor 7 of this machine is in use by the worker 'rig-1', process {holder.pid}; waiting for it"
    ]


def test_waiting_for_a_device_ends_in_time_and_when_it_is_given_up(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    lock = DeviceLock(device(7), "rig-2", tmp_path / "locks")
    assert not lock.wait(60.0, lambda: True, lambda _: None)
    with pytest.raises(DeviceBusy):
        lock.wait(0.0, lambda: False, lambda _: None)


def test_every_user_of_a_machine_has_the_same_folder_of_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/somewhere/of/my/own")
    assert lock_folder() in (Path("/run/lock/tilewright-devices"), Path("/tmp/tilewright-devices"))


def test_the_folder_and_its_files_are_open_to_all(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with DeviceLock(device(1), "rig", tmp_path / "locks").acquire():
            pass
    finally:
        os.umask(before)
    modes = [oct((tmp_path / name).stat().st_mode & 0o7777) for name in ("locks", "locks/cpu1")]
    assert modes == ["0o1777", "0o666"]


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "there").write_text("precious")
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "cpu1").symlink_to(tmp_path / target)
    with pytest.raises(MeasureError, match="cpu1 cannot be opened"):
        DeviceLock(device(1), "rig", tmp_path / "locks").acquire()
    assert ((tmp_path / "there").read_text(), (tmp_path / "nowhere").exists()) == ("precious", False)


def test_a_hard_link_to_a_file_of_another_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("precious")
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "cpu1").hardlink_to(tmp_path / "there")
    with pytest.raises(MeasureError, match="cpu1 is no plain file: remove it"):
        DeviceLock(device(1), "rig", tmp_path / "locks").acquire()
    assert (tmp_path / "there").read_text() == "precious"


def test_a_pipe_in_the_place_of_a_lock_does_not_hang_a_worker(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    os.mkfifo(tmp_path / "locks" / "cpu1")
    with pytest.raises(MeasureError, match="cpu1 is no plain file: remove it"):
        DeviceLock(device(1), "rig", tmp_path / "locks").acquire()


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MeasureError, match="is no folder that can be used"):
        DeviceLock(device(1), "rig", tmp_path / "locks").acquire()


@pytest.mark.parametrize(
    "text",
    [b"", b"not json", b"[1]", b'{"pid": "x", "worker": 7}', b"\xff\xfe", b'{"worker": "' + b"x" * 2000],
)
def test_a_lock_file_may_hold_anything(tmp_path: Path, text: bytes) -> None:
    with DeviceLock(device(1), "rig", tmp_path / "locks").acquire():
        (tmp_path / "locks" / "cpu1").write_bytes(text)
        with pytest.raises(DeviceBusy, match=r"is in use by another worker$"):
            DeviceLock(device(1), "rig-2", tmp_path / "locks").acquire()


def test_what_a_holder_calls_itself_cannot_write_on_a_terminal(tmp_path: Path) -> None:
    with (
        DeviceLock(device(1), "\x1b[2Jrig\n", tmp_path / "locks").acquire(),
        pytest.raises(DeviceBusy) as busy,
    ):
        DeviceLock(device(1), "rig-2", tmp_path / "locks").acquire()
    assert "the worker '[2Jrig'" in str(busy.value)
