"""What never changes under its key, kept once it was read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Up to `most` values that `read` gives for keys; those not asked for longest are forgotten first. Safe
    to use from several threads."""

    def __init__(self, read: Callable[[Collection[str]], Mapping[str, T]], most: int) -> None:
        self._read = read
        self._most = most
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, keys: Collection[str]) -> dict[str, T]:
        """The values of these keys, as far as there are any; all that are not known are read at once."""
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        unknown = sorted({*keys} - found.keys())
        if not unknown:
            return found
        read = self._read(unknown)
        with self._lock:
            self._kept |= read
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found | dict(read)
