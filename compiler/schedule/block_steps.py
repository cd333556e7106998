"""Steps on blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..arith import Var
from ..ir import PrimFunc, Scope
from . import primitives
from .handles import BlockRV, LoopRV
from .recorder import Recorder


class BlockSteps(Recorder):
    """Steps that move blocks, add copies, or change where their values live."""

    def compute_at(self, block: BlockRV, loop: LoopRV) -> list[LoopRV]:
        """See `primitives.compute_at`: the block's new loops, one for each of its iteration variables."""
        return self._at("compute_at", block, loop, primitives.compute_at)

    def reverse_compute_at(self, block: BlockRV, loop: LoopRV) -> list[LoopRV]:
        """See `primitives.reverse_compute_at`: the block's new loops, one for each of its iteration
        variables."""
        return self._at("reverse_compute_at", block, loop, primitives.reverse_compute_at)

    def _at(
        self,
        name: str,
        block: BlockRV,
        loop: LoopRV,
        primitive: Callable[[PrimFunc, str, Var], tuple[PrimFunc, list[Var]]],
    ) -> list[LoopRV]:
        self._own(name, block, BlockRV)
        self._own(name, loop, LoopRV)
        new = self._apply(name, lambda: primitive(self.func, block.name, loop.var))
        return self._loops(name, {"block": block.id, "loop": loop.id}, new)

    def compute_inline(self, block: BlockRV) -> None:
        """See `primitives.compute_inline`."""
        self._own("compute_inline", block, BlockRV)
        self._apply("compute_inline", lambda: (primitives.compute_inline(self.func, block.name), None))
        self._record("compute_inline", {"block": block.id})

    def reverse_compute_inline(self, block: BlockRV) -> None:
        """See `primitives.reverse_compute_inline`."""
        self._own("reverse_compute_inline", block, BlockRV)
        self._apply(
            "reverse_compute_inline", lambda: (primitives.reverse_compute_inline(self.func, block.name), None)
        )
        self._record("reverse_compute_inline", {"block": block.id})

    def compute_ahead(self, block: BlockRV) -> None:
        """See `primitives.compute_ahead`."""
        self._own("compute_ahead", block, BlockRV)
        self._apply("compute_ahead", lambda: (primitives.compute_ahead(self.func, block.name), None))
        self._record("compute_ahead", {"block": block.id})

    def cache_read(
        self,
        block: BlockRV,
        index: int,
        scope: Scope,
        order: Sequence[int] | None = None,
        accesses: Sequence[int] | None = None,
    ) -> BlockRV:
        """See `primitives.cache_read`: the copying block. `order` permutes the dimensions of the copy
        (packing); only the `accesses` with these numbers read it, by default all."""
        self._own("cache_read", block, BlockRV)
        name = self._apply(
            "cache_read",
            lambda: primitives.cache_read(self.func, block.name, index, scope, order, accesses),
        )
        args = {
            "block": block.id,
            "index": index,
            "scope": scope,
            "order": None if order is None else tuple(order),
            "accesses": None if accesses is None else tuple(accesses),
        }
        return self._block("cache_read", args, name)

    def cache_write(self, block: BlockRV, index: int, scope: Scope) -> BlockRV:
        """See `primitives.cache_write`: the copying block."""
        self._own("cache_write", block, BlockRV)
        name = self._apply("cache_write", lambda: primitives.cache_write(self.func, block.name, index, scope))
        return self._block("cache_write", {"block": block.id, "index": index, "scope": scope}, name)

    def set_scope(self, block: BlockRV, index: int, scope: Scope) -> None:
        """See `primitives.set_scope`."""
        self._own("set_scope", block, BlockRV)
        self._apply("set_scope", lambda: (primitives.set_scope(self.func, block.name, index, scope), None))
        self._record("set_scope", {"block": block.id, "index": index, "scope": scope})

    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """See `primitives.decompose_reduction`: the init block."""
        self._own("decompose_reduction", block, BlockRV)
        self._own("decompose_reduction", loop, LoopRV)
        name = self._apply(
            "decompose_reduction", lambda: primitives.decompose_reduction(self.func, block.name, loop.var)
        )
        return self._block("decompose_reduction", {"block": block.id, "loop": loop.id}, name)
