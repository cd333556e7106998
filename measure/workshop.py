"""Where candidates are built: one builder at a time, and the code of the last few."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from .builder import Builder, Built
from .messages import MeasureInput
from .program import Build

__all__ = ["Workshop"]

KEPT = 16
"""The code of so many candidates is kept: the final rounds of a search time a few of them again."""

_KEPT_BYTES = 64 << 20


@dataclass(slots=True)
class Workshop:
    """Whoever has one must `clear` it in the end."""

    builder: Builder | None = None
    kept: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict)

    @property
    def busy(self) -> Builder | None:
        """The builder while it builds, to be watched over."""
        return self.builder if self.builder is not None and self.builder.item is not None else None

    def begin(self, item: MeasureInput, build: Build, on: frozenset[int]) -> None:
        """Builds ahead, on these processors, what is not built yet."""
        if _key(item) not in self.kept:
            self._start(item, build, on)

    def built(self, item: MeasureInput, build: Build) -> Built:
        """The code of a candidate, or why there is none; what was built ahead and is another is in vain."""
        key = _key(item)
        if (code := self.kept.get(key)) is not None:
            self.kept.move_to_end(key)
            return Built(item, code, 0.0)
        if (busy := self.busy) is None or not _is_same(busy, item):
            busy = self._start(item, build, None)
        built = replace(busy.finish(), item=item)
        if busy.is_spent:
            self._discard()
        if isinstance(built.what, bytes):
            self._keep(key, built.what)
        return built

    def clear(self) -> None:
        self._discard()
        self.kept.clear()

    def _start(self, item: MeasureInput, build: Build, on: frozenset[int] | None) -> Builder:
        builder = self.builder
        if builder is None or self.busy or (builder.build, builder.limits) != (build, item.limits):
            self._discard()
            builder = self.builder = Builder.begin(build, item.limits)
        builder.start(item, on)
        return builder

    def _discard(self) -> None:
        if self.builder is not None:
            self.builder.discard()
            self.builder = None

    def _keep(self, key: bytes, code: bytes) -> None:
        self.kept[key] = code
        while len(self.kept) > KEPT or sum(map(len, self.kept.values())) > _KEPT_BYTES:
            self.kept.popitem(last=False)


def _is_same(builder: Builder, item: MeasureInput) -> bool:
    return builder.item is not None and replace(builder.item, best_seconds=item.best_seconds) == item


def _key(item: MeasureInput) -> bytes:
    """What its code depends on, and the limits under which that was built."""
    made_of = [item.workload, item.target, item.trace, item.limits.to_json()]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).digest()
