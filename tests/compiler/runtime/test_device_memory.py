"""What every device knows of itself, its memory and copies: one suite over the CPU and a plug-in's."""

import itertools
import threading

import numpy as np
import pytest
from device_memory import KINDS, download, host, upload

import tilewright
from tilewright.compiler.runtime.device_api import (
    Device,
    DeviceAPI,
    DeviceError,
    copy,
    device_api,
)


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


def test_a_workspace_that_was_freed_as_data_space_is_not_used_again(api: DeviceAPI) -> None:
    unused = api.allocate_workspace(0, 100)
    api.free_workspace(unused)
    api.free(unused)
    assert not api.allocate_workspace(0, 100).freed


def test_a_workspace_that_was_freed_as_data_space_is_not_given_back(api: DeviceAPI) -> None:
    workspace = api.allocate_workspace(0, 100)
    api.free(workspace)
    with pytest.raises(DeviceError, match=r"was freed already$"):
        api.free_workspace(workspace)
    assert api.allocate_workspace(0, 100) is not workspace


def test_more_than_any_memory_is_refused(api: DeviceAPI) -> None:
    with pytest.raises(MemoryError):
        api.allocate(0, 1 << 70)


@pytest.mark.parametrize("index", ["0", True, 0.0])
def test_an_index_that_is_no_integer_is_refused(index: object) -> None:
    with pytest.raises(DeviceError, match=f"^device: the index is an integer, not {index!r}$"):
        tilewright.device("cpu", index)  # type: ignore[arg-type]


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
        (5, 0, 0, "copy: bytes 0 to 5, copied from, lie outside of 4 bytes"),
        (2, 3, 0, "copy: bytes 3 to 5, copied from, lie outside of 4 bytes"),
        (2, -1, 0, "copy: bytes -1 to 1, copied from, lie outside of 4 bytes"),
        (4, 0, 1, "copy: bytes 1 to 5, copied to, lie outside of 4 bytes"),
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
