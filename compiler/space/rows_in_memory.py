"""Where in a buffer's shape neighbours in memory are neighbours."""

from __future__ import annotations

from ..ir import Buffer


def last_dim(buffer: Buffer) -> int:
    """The dimension along which elements lie next to each other: the last one that is longer than 1; the last
    one where there is none."""
    longer = [d for d, extent in enumerate(buffer.shape) if extent.const != 1]
    return longer[-1] if longer else len(buffer.shape) - 1
