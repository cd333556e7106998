"""Steps that rearrange reductions, iteration spaces and the layouts of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..arith import Var
from ..ir import PrimFunc, user_span
from . import primitives
from .errors import ScheduleError
from .handles import BlockRV, LoopRV
from .index_expr import MapFunction, Plain
from .pad_number import PadValue, plain_number
from .recorder import Recorder


class LayoutSteps(Recorder):
    """Steps that change what a block iterates over, or how an intermediate lies in memory."""

    def rfactor(self, loop: LoopRV, axis: int = 0) -> BlockRV:
        """See `primitives.rfactor`: the block that makes the parts."""
        self._own("rfactor", loop, LoopRV)
        name = self._apply("rfactor", lambda: primitives.rfactor(self.func, loop.var, axis))
        return self._block("rfactor", {"loop": loop.id, "axis": axis}, name)

    def reindex(self, block: BlockRV, access: Literal["read", "write"], index: int) -> BlockRV:
        """See `primitives.reindex`: the copying block."""
        self._own("reindex", block, BlockRV)
        name = self._apply("reindex", lambda: primitives.reindex(self.func, block.name, access, index))
        return self._block("reindex", {"block": block.id, "access": access, "index": index}, name)

    def pad_einsum(self, block: BlockRV, padding: Sequence[int]) -> None:
        """See `primitives.pad_einsum`. The block's loops are new ones."""
        self._own("pad_einsum", block, BlockRV)
        self._apply("pad_einsum", lambda: (primitives.pad_einsum(self.func, block.name, padding), None))
        self._record("pad_einsum", {"block": block.id, "padding": tuple(padding)})

    def convert_read(self, block: BlockRV, index: int, dtype: str) -> BlockRV:
        """See `primitives.convert_read`: the converting block."""
        self._own("convert_read", block, BlockRV)
        name = self._apply(
            "convert_read", lambda: primitives.convert_read(self.func, block.name, index, dtype)
        )
        return self._block("convert_read", {"block": block.id, "index": index, "dtype": dtype}, name)

    def flip_sign(self, block: BlockRV, index: int) -> list[BlockRV]:
        """See `primitives.flip_sign`: the block that makes the excess, and the one that takes it off."""
        self._own("flip_sign", block, BlockRV)
        names = self._apply("flip_sign", lambda: primitives.flip_sign(self.func, block.name, index))
        return self._blocks("flip_sign", {"block": block.id, "index": index}, names)

    def storage_align(self, block: BlockRV, index: int, axis: int, factor: int, offset: int) -> None:
        """See `primitives.storage_align`."""
        self._own("storage_align", block, BlockRV)
        args = {"block": block.id, "index": index, "axis": axis, "factor": factor, "offset": offset}
        self._apply(
            "storage_align",
            lambda: (primitives.storage_align(self.func, block.name, index, axis, factor, offset), None),
        )
        self._record("storage_align", args)

    def transform_layout(
        self, block: BlockRV, index: int, index_map: MapFunction, pad_value: PadValue | None = None
    ) -> None:
        """See `primitives.transform_layout`. The trace holds the map as polynomials."""
        self._own("transform_layout", block, BlockRV)
        plain = self._apply(
            "transform_layout",
            lambda: primitives.transform_layout(self.func, block.name, index, index_map, pad_value),
        )
        args = {"block": block.id, "index": index, "index_map": plain, "pad_value": plain_number(pad_value)}
        self._record("transform_layout", args)

    def transform_block_layout(self, block: BlockRV, index_map: MapFunction) -> list[LoopRV]:
        """See `primitives.transform_block_layout`: the new loops. The trace holds the map as polynomials."""
        self._own("transform_block_layout", block, BlockRV)
        loops, plain = self._apply(
            "transform_block_layout",
            lambda: _pair(primitives.transform_block_layout(self.func, block.name, index_map)),
        )
        return self._loops("transform_block_layout", {"block": block.id, "index_map": plain}, loops)

    def blockize(self, loop: LoopRV) -> BlockRV:
        """See `primitives.blockize`: the unit, of which get_loops gives the loops around."""
        self._own("blockize", loop, LoopRV)
        name = self._apply("blockize", lambda: primitives.blockize(self.func, loop.var))
        return self._block("blockize", {"loop": loop.id}, name)

    def tensorize(self, at: LoopRV | BlockRV, intrinsic: str) -> None:
        """See `primitives.tensorize`: of a loop, or of a unit that blockize made."""
        if not isinstance(at, LoopRV | BlockRV):
            reason = f"expected a loop or a unit of this schedule, got {at!r}"
            raise ScheduleError("tensorize", reason, span=user_span())
        self._own("tensorize", at, type(at))
        loop, unit = (at.var, None) if isinstance(at, LoopRV) else (None, at.name)
        self._apply("tensorize", lambda: (primitives.tensorize(self.func, loop, unit, intrinsic), None))
        self._record("tensorize", {"at": at.id, "intrinsic": intrinsic})


def _pair(r: tuple[PrimFunc, list[Var], Plain]) -> tuple[PrimFunc, tuple[list[Var], Plain]]:
    return r[0], (r[1], r[2])
