"""What every device does: one suite over the CPU and a plug-in's device."""

import gc
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import te
from tilewright.compiler.runtime.device_api import (
    Device,
    DeviceAPI,
    DeviceError,
    Memory,
    Stream,
    copy,
    device_api,
)

KINDS = ("cpu", "pyref")


@pytest.fixture(params=KINDS)
def api(request: pytest.FixtureRequest) -> DeviceAPI:
    if request.param != "cpu":
        request.getfixturevalue(request.param)
    return device_api(request.param)


@pytest.fixture
def make_stream(api: DeviceAPI) -> Any:
    made: list[Stream] = []

    def make() -> Stream:
        made.append(api.create_stream(0))
        return made[-1]

    yield make
    for stream in made:
        try:
            api.free_stream(stream)
        except DeviceError:
            continue


def _ignore(*done: object) -> None:
    """Work gives nothing."""


def host(array: np.ndarray[Any, Any]) -> Memory:
    return Memory(Device("cpu"), array.ctypes.data, array.nbytes, array)


def upload(api: DeviceAPI, values: list[int]) -> Memory:
    array = np.array(values, np.uint8)
    memory = api.allocate(0, array.nbytes)
    api.copy(host(array), memory, array.nbytes)
    api.synchronize(0)
    return memory


def download(api: DeviceAPI, memory: Memory) -> list[int]:
    array = np.zeros(memory.nbytes, np.uint8)
    api.copy(memory, host(array), memory.nbytes)
    api.synchronize(0)
    values: list[int] = array.tolist()
    return values


# ---- attributes ----
def test_a_device_knows_whether_it_exists(api: DeviceAPI) -> None:
    assert [api.attribute(index, "exist") for index in (0, 99, -1)] == [True, False, False]


def test_an_unknown_attribute_has_no_answer(api: DeviceAPI) -> None:
    assert (api.attribute(0, "flavour"), api.attribute(99, "total_memory")) == (None, None)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("device_name", (str, type(None))),
        ("compute_version", (str, type(None))),
        ("api_version", (int,)),
        ("max_threads", (int,)),
        ("multi_processor_count", (int, type(None))),
        ("total_memory", (int,)),
        ("l1d", (int, type(None))),
        ("l2", (int, type(None))),
        ("l3", (int, type(None))),
    ],
)
def test_an_attribute_is_a_fact_of_its_type_or_unknown(
    api: DeviceAPI, name: str, kinds: tuple[type, ...]
) -> None:
    value = api.attribute(0, name)
    assert isinstance(value, kinds) and value != 0


def test_a_device_is_found_by_its_name(api: DeviceAPI) -> None:
    assert (tilewright.device(api.name), str(Device(api.name))) == (Device(api.name), f"{api.name}(0)")


def test_a_device_that_is_not_there_is_refused(api: DeviceAPI) -> None:
    with pytest.raises(DeviceError, match=rf"^there is no {api.name}\(7\) on this machine$"):
        tilewright.device(api.name, 7)


def test_an_unknown_device_is_refused_naming_the_known_ones() -> None:
    with pytest.raises(DeviceError, match=r"^unknown device 'gpu'; known: cpu, and those of c, llvm"):
        tilewright.device("gpu")


def test_a_kind_without_a_device_of_its_own_says_where_it_runs() -> None:
    with pytest.raises(DeviceError) as caught:
        tilewright.device("llvm")
    assert str(caught.value) == "the kind 'llvm' brings no device of its own: its code runs on the cpu"


# ---- memory ----
@pytest.mark.parametrize("alignment", [1, 64, 4096])
@pytest.mark.parametrize("nbytes", [0, 1, 100, 4096])
def test_data_space_is_aligned_and_as_large_as_asked(api: DeviceAPI, nbytes: int, alignment: int) -> None:
    memory = api.allocate(0, nbytes, alignment)
    assert (memory.address % alignment, memory.nbytes, memory.device) == (0, nbytes, Device(api.name))
    api.free(memory)


def test_data_space_does_not_overlap(api: DeviceAPI) -> None:
    spaces = sorted((api.allocate(0, 100) for _ in range(20)), key=lambda m: m.address)
    assert all(a.address + a.nbytes <= b.address for a, b in itertools.pairwise(spaces))
    for memory in spaces:
        api.free(memory)


@pytest.mark.parametrize(
    ("index", "nbytes", "alignment", "message"),
    [
        (0, -1, 64, "allocate: -1 bytes cannot be allocated"),
        (0, 8, 3, "allocate: the alignment must be a power of two, not 3"),
        (0, 8, 0, "allocate: the alignment must be a power of two, not 0"),
        (9, 8, 64, "there is no "),
    ],
)
def test_space_that_no_device_has_is_refused(
    api: DeviceAPI, index: int, nbytes: int, alignment: int, message: str
) -> None:
    with pytest.raises(DeviceError) as caught:
        api.allocate(index, nbytes, alignment)
    assert str(caught.value).startswith(message)


def test_space_is_freed_once(api: DeviceAPI) -> None:
    memory = api.allocate(0, 8)
    api.free(memory)
    with pytest.raises(DeviceError, match=r"was freed already$"):
        api.free(memory)


def test_space_of_somebody_else_is_not_freed(api: DeviceAPI) -> None:
    with pytest.raises(DeviceError, match=r"was not allocated here$"):
        api.free(host(np.zeros(8, np.uint8)))


# ---- workspaces ----
def test_a_workspace_is_used_again(api: DeviceAPI) -> None:
    first = api.allocate_workspace(0, 5000)
    api.free_workspace(first)
    again = api.allocate_workspace(0, 4500)
    assert (again.address, again.address % 64, again.nbytes >= 5000) == (first.address, 0, True)
    api.free_workspace(again)
    api.release_workspaces()


def test_workspaces_in_use_are_apart(api: DeviceAPI) -> None:
    one, two = api.allocate_workspace(0, 100), api.allocate_workspace(0, 100)
    low, high = sorted([one, two], key=lambda m: m.address)
    assert low.address + low.nbytes <= high.address
    api.free_workspace(one)
    api.free_workspace(two)
    api.release_workspaces()


def test_the_smallest_workspace_that_fits_is_taken(api: DeviceAPI) -> None:
    large, small = api.allocate_workspace(0, 50_000), api.allocate_workspace(0, 100)
    for memory in (large, small):
        api.free_workspace(memory)
    taken = api.allocate_workspace(0, 64)
    assert taken.address == small.address
    api.free_workspace(taken)
    api.release_workspaces()


def test_released_workspaces_are_freed_and_those_in_use_are_not(api: DeviceAPI) -> None:
    used, unused = api.allocate_workspace(0, 100), api.allocate_workspace(0, 100)
    api.free_workspace(unused)
    api.release_workspaces()
    assert (used.freed, unused.freed) == (False, True)
    api.free_workspace(used)
    api.release_workspaces()


def test_a_workspace_is_given_back_once(api: DeviceAPI) -> None:
    memory = api.allocate_workspace(0, 100)
    api.free_workspace(memory)
    with pytest.raises(DeviceError, match=r"is no workspace in use by this thread$"):
        api.free_workspace(memory)
    api.release_workspaces()


def test_threads_have_workspaces_of_their_own(api: DeviceAPI) -> None:
    mine = api.allocate_workspace(0, 100)
    api.free_workspace(mine)
    theirs: list[int] = []

    def other() -> None:
        memory = api.allocate_workspace(0, 100)
        theirs.append(memory.address)
        api.free_workspace(memory)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert theirs != [mine.address]
    api.release_workspaces()


# ---- copies ----
def test_bytes_go_to_the_device_and_come_back(api: DeviceAPI) -> None:
    memory = upload(api, [3, 1, 4, 1, 5])
    assert download(api, memory) == [3, 1, 4, 1, 5]
    api.free(memory)


def test_a_part_is_copied_between_offsets(api: DeviceAPI) -> None:
    source, target = upload(api, [1, 2, 3, 4]), upload(api, [9, 9, 9, 9, 9])
    api.copy(source, target, 2, source_offset=1, target_offset=3)
    api.synchronize(0)
    assert download(api, target) == [9, 9, 9, 2, 3]


@pytest.mark.parametrize(
    ("nbytes", "source_offset", "target_offset", "message"),
    [
        (-1, 0, 0, "copy: -1 bytes cannot be copied"),
        (5, 0, 0, "copy: bytes 0 to 5 from lie outside of 4 bytes"),
        (2, 3, 0, "copy: bytes 3 to 5 from lie outside of 4 bytes"),
        (2, -1, 0, "copy: bytes -1 to 1 from lie outside of 4 bytes"),
        (4, 0, 1, "copy: bytes 1 to 5 to lie outside of 4 bytes"),
    ],
)
def test_a_copy_out_of_bounds_is_refused(
    api: DeviceAPI, nbytes: int, source_offset: int, target_offset: int, message: str
) -> None:
    source, target = upload(api, [1, 2, 3, 4]), upload(api, [5, 6, 7, 8])
    with pytest.raises(DeviceError) as caught:
        api.copy(source, target, nbytes, source_offset, target_offset)
    assert str(caught.value).startswith(message)
    assert download(api, target) == [5, 6, 7, 8]


def test_freed_space_is_not_copied(api: DeviceAPI) -> None:
    source, target = upload(api, [1]), upload(api, [2])
    api.free(source)
    with pytest.raises(DeviceError, match=r"^copy: the memory copied from was freed: "):
        api.copy(source, target, 1)


def test_any_two_devices_copy_to_each_other(pyref: str) -> None:
    for kinds in [(a, b) for a in KINDS for b in KINDS]:
        first, second = (upload(device_api(k), v) for k, v in zip(kinds, ([1, 2], [0, 0]), strict=True))
        copy(first, second, 2)
        assert download(device_api(kinds[1]), second) == [1, 2]


def test_two_devices_of_one_kind_copy_to_each_other(pyref: str) -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    first = tilewright.NDArray.from_numpy(array, tilewright.device(pyref, 0))
    second = first.to(tilewright.device(pyref, 1))
    np.testing.assert_array_equal(second.numpy(), array)


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
    api.submit(before, lambda: _ignore(gate.wait(), done.append("before")))
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
    api.submit(before, lambda: _ignore(gate.wait()))
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
        api.submit(stream, lambda n=n: _ignore(slow.wait(0.002), done.append(n)))
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
    api.submit(stream, lambda: _ignore(gate.wait()))
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
