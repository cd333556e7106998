"""Looking at the program that is being scheduled."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Block, PrimFunc, user_span
from .errors import ScheduleError
from .find import consumers, find_block, loops_around, producers
from .handles import BlockRV, LoopRV
from .recorder import Recorder


class Look(Recorder):
    """Steps that find blocks and loops and change nothing."""

    def get_block(self, block: str | int) -> BlockRV:
        """The block of that name, or the block at that position in program order (the form that traces
        hold)."""
        names = [b.name for _, b in self.func.blocks()]
        if isinstance(block, int) and not isinstance(block, bool) and 0 <= block < len(names):
            position = block
        elif isinstance(block, str) and block in names:
            position = names.index(block)
        else:
            reason = f"there is no block {block!r}; the blocks are {', '.join(names)}"
            raise ScheduleError("get_block", reason, span=user_span())
        return self._block("get_block", {"block": position}, names[position])

    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """The loops around a block or a unit, outermost first."""
        self._own("get_loops", block, BlockRV)
        path = self._do("get_loops", lambda: loops_around(self.func, block.name, "get_loops"))
        return self._loops("get_loops", {"block": block.id}, [f.var for f in path])

    def get_blocks(self) -> list[BlockRV]:
        """Every block, in program order."""
        return self._blocks("get_blocks", {}, [b.name for _, b in self.func.blocks()])

    def get_producers(self, block: BlockRV) -> list[BlockRV]:
        """The blocks before this one that write a buffer which it reads, in program order; of a reduction's
        steps also what began them."""
        return self._neighbours("get_producers", block, producers)

    def get_consumers(self, block: BlockRV) -> list[BlockRV]:
        """The blocks behind this one that read the buffer which it writes, in program order."""
        return self._neighbours("get_consumers", block, consumers)

    def _neighbours(
        self, name: str, block: BlockRV, of: Callable[[PrimFunc, Block], list[Block]]
    ) -> list[BlockRV]:
        self._own(name, block, BlockRV)
        _, b = self._do(name, lambda: find_block(self.func, block.name, name))
        return self._blocks(name, {"block": block.id}, [x.name for x in of(self.func, b)])
