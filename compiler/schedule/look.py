"""Looking at the program that is being scheduled."""

from __future__ import annotations

from ..ir import user_span
from .errors import ScheduleError
from .find import loops_around
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
