"""Addresses and aligned memory of NumPy arrays."""

from typing import Any

import numpy as np
import pytest

from tilewright.compiler.runtime import arrays
from tilewright.compiler.runtime.arrays import address_reader, aligned_bytes


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(7, np.float32),
        np.zeros((3, 5), np.int8)[1:, 2:],
        np.zeros((), np.float64),
        np.zeros((0, 4), np.float32),
        np.frombuffer(b"0123", np.uint8),
    ],
)
def test_the_quick_address_is_the_address(array: np.ndarray[Any, Any]) -> None:
    assert address_reader()(array) == array.ctypes.data


def test_the_slow_way_is_taken_where_the_object_is_laid_out_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OtherPointer:
        value = 12

        @classmethod
        def from_address(cls, _address: int) -> "OtherPointer":
            return cls()

    monkeypatch.setattr(arrays, "c_void_p", OtherPointer)
    array = np.zeros(4)
    assert address_reader.__wrapped__()(array) == array.ctypes.data


@pytest.mark.parametrize("count", [1, 63, 64, 4097])
def test_aligned_memory_starts_at_a_cache_line_and_has_its_size(count: int) -> None:
    block = aligned_bytes(count)
    assert (block.nbytes, block.ctypes.data % 64) == (count, 0)
