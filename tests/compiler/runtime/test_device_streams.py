"""Streams of every device: one suite over the CPU and a plug-in's."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from device_memory import download, host, ignore, upload

import tilewright
from tilewright import te
from tilewright.compiler.runtime.device_api import (
    Device,
    DeviceAPI,
    DeviceError,
    Stream,
    device_api,
)

FORKING = """
import os, signal
import numpy
import tilewright
from tilewright.compiler.runtime.device_api import DeviceError, device_api
api, done = device_api("cpu"), []
stream = api.create_stream(0)
api.submit(stream, lambda: done.append("parent"))
api.synchronize(0, stream)
if (child := os.fork()) == 0:
    signal.alarm(20)
    try:
        api.synchronize(0, stream)
    except DeviceError as error:
        print(error)
    other = api.create_stream(0)
    api.submit(other, lambda: done.append("child"))
    api.synchronize(0)
    print(done, tilewright.NDArray.from_numpy(numpy.arange(2.0)).numpy().tolist(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


# ---- streams ----
MakeStream = Callable[[], Stream]


def test_work_of_a_stream_runs_in_order(api: DeviceAPI, make_stream: MakeStream) -> None:
    stream, done = make_stream(), []
    for n in range(200):
        api.submit(stream, lambda n=n: done.append(n))
    api.synchronize(0, stream)
    assert done == list(range(200))


def test_a_stream_waits_for_another(api: DeviceAPI, make_stream: MakeStream) -> None:
    before, after, done = make_stream(), make_stream(), []
    gate = threading.Event()
    if api.name == "pyref":  # its streams work at once
        gate.set()
    api.submit(before, lambda: ignore(gate.wait(), done.append("before")))
    api.synchronize_streams(before, after)
    api.submit(after, lambda: done.append("after"))
    gate.set()
    api.synchronize(0, after)
    assert done == ["before", "after"]


def test_waiting_for_a_stream_takes_no_later_work_into_account(
    api: DeviceAPI, make_stream: MakeStream
) -> None:
    before, after, done = make_stream(), make_stream(), []
    api.synchronize_streams(before, after)
    gate = threading.Event()
    if api.name == "pyref":
        gate.set()
    api.submit(before, lambda: gate.wait())
    api.submit(after, lambda: done.append("after"))
    api.synchronize(0, after)
    gate.set()
    assert done == ["after"]


def test_streams_may_wait_for_each_other_in_turn(api: DeviceAPI, make_stream: MakeStream) -> None:
    one, two, done = make_stream(), make_stream(), []
    for n in range(50):
        first, second = (one, two) if n % 2 else (two, one)
        api.submit(first, lambda n=n: done.append(n))
        api.synchronize_streams(first, second)
    api.synchronize(0)
    assert done == list(range(50))


def test_synchronising_a_device_waits_for_all_its_streams(api: DeviceAPI, make_stream: MakeStream) -> None:
    done: list[int] = []
    for n in range(3):
        api.submit(make_stream(), lambda n=n: done.append(n))
    api.synchronize(0)
    assert sorted(done) == [0, 1, 2]


def test_copies_go_to_the_current_stream(api: DeviceAPI, make_stream: MakeStream) -> None:
    stream = make_stream()
    source, target = upload(api, [1, 2]), upload(api, [0, 0])
    api.set_stream(0, stream)
    api.submit(stream, lambda: None)
    api.copy(source, target, 2)
    assert api.current_stream(0) is stream
    api.synchronize(0, stream)
    api.set_stream(0, None)
    assert (api.current_stream(0), download(api, target)) == (None, [1, 2])


def test_the_current_stream_is_one_for_each_thread(api: DeviceAPI, make_stream: MakeStream) -> None:
    api.set_stream(0, make_stream())
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append(api.current_stream(0)))
    thread.start()
    thread.join()
    api.set_stream(0, None)
    assert seen == [None]


def test_freeing_a_stream_waits_for_its_work(api: DeviceAPI) -> None:
    stream, done = api.create_stream(0), []
    slow = threading.Event()
    for n in range(20):
        api.submit(stream, lambda n=n: ignore(slow.wait(0.002), done.append(n)))
    api.free_stream(stream)
    assert done == list(range(20))


def test_a_freed_stream_is_no_longer_current(api: DeviceAPI) -> None:
    stream = api.create_stream(0)
    api.set_stream(0, stream)
    api.free_stream(stream)
    assert api.current_stream(0) is None


@pytest.mark.parametrize("use", ["submit", "copy", "set", "synchronize", "before", "after", "free"])
def test_a_freed_stream_is_not_used(api: DeviceAPI, make_stream: MakeStream, use: str) -> None:
    stream, other = api.create_stream(0), make_stream()
    memory = upload(api, [1])
    api.free_stream(stream)
    uses: dict[str, Callable[[], object]] = {
        "submit": lambda: api.submit(stream, lambda: None),
        "copy": lambda: api.copy(memory, memory, 1, stream=stream),
        "set": lambda: api.set_stream(0, stream),
        "synchronize": lambda: api.synchronize(0, stream),
        "before": lambda: api.synchronize_streams(stream, other),
        "after": lambda: api.synchronize_streams(other, stream),
        "free": lambda: api.free_stream(stream),
    }
    with pytest.raises(DeviceError, match=r"was freed$"):
        uses[use]()


def test_a_stream_of_another_kind_is_refused(api: DeviceAPI) -> None:
    with pytest.raises(DeviceError, match=r"is no stream of "):
        api.submit(object(), lambda: None)  # type: ignore[arg-type]


def test_an_error_of_the_work_is_raised_once_where_somebody_waits(
    api: DeviceAPI, make_stream: MakeStream
) -> None:
    stream, done = make_stream(), []
    api.submit(stream, lambda: [][1])
    api.submit(stream, lambda: done.append("skipped"))
    with pytest.raises(IndexError):
        api.synchronize(0, stream)
    api.submit(stream, lambda: done.append("next"))
    api.synchronize(0, stream)
    assert done == ["next"]


def test_a_kernel_runs_on_a_stream_after_the_copy_before_it(api: DeviceAPI, make_stream: MakeStream) -> None:
    a = te.placeholder((64,), "float32", name="A")
    func = te.create_prim_func([a, te.compute((64,), lambda i: a[i] * 2.0, name="B")], name="twice")
    kernel = tilewright.build(func, "llvm" if api.name == "cpu" else api.name)
    x, y = (tilewright.NDArray.empty((64,), "float32", Device(api.name)) for _ in range(2))
    source = np.arange(64, dtype=np.float32)
    stream = make_stream()
    api.copy(host(source), x.memory, x.nbytes, stream=stream)
    api.submit(stream, kernel.bind(x, y))
    api.synchronize(0, stream)
    np.testing.assert_array_equal(y.numpy(), source * 2)


def test_space_freed_while_a_copy_waits_is_kept_for_it() -> None:
    api, gate = device_api("cpu"), threading.Event()
    stream = api.create_stream(0)
    source, target = upload(api, [7] * 100), upload(api, [0] * 100)
    api.submit(stream, lambda: gate.wait())
    api.copy(source, target, 100, stream=stream)
    api.free(source)
    others = [np.ones(164, np.uint8) for _ in range(20)]
    gate.set()
    api.free_stream(stream)
    assert (download(api, target), len(others)) == ([7] * 100, 20)


def test_a_stream_out_of_use_ends_its_thread() -> None:
    api = device_api("cpu")
    stream = api.create_stream(0)
    name = repr(stream)
    api.submit(stream, lambda: None)
    api.synchronize(0, stream)
    del stream
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(10)
    assert name not in [thread.name for thread in threading.enumerate()]


def test_work_of_a_stream_can_neither_wait_for_it_nor_free_it() -> None:
    api = device_api("cpu")
    stream = api.create_stream(0)
    problems = []
    for use in (lambda: api.synchronize(0, stream), lambda: api.free_stream(stream)):
        api.submit(stream, use)
        with pytest.raises(DeviceError) as caught:
            api.synchronize(0, stream)
        problems.append(str(caught.value))
    api.free_stream(stream)
    assert problems == [f"work of {stream!r} cannot {what}" for what in ("wait for itself", "free it")]


def test_work_that_ends_the_program_is_an_error_of_the_work() -> None:
    api = device_api("cpu")
    stream = api.create_stream(0)
    api.submit(stream, lambda: sys.exit(3))
    with pytest.raises(SystemExit):
        api.synchronize(0, stream)
    api.free_stream(stream)


def test_a_fork_has_no_streams_of_the_process_before_it() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (
        "stream 1 of cpu(0) belongs to the process that this one was forked from; create another\n"
        "['parent', 'child'] [0.0, 1.0]\n",
        "",
    )
