"""What code generation gives."""

from __future__ import annotations

from dataclasses import dataclass

from ..runtime import PackInfo, ParamInfo, WorkspaceInfo


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel as text: the function's name, the text, and its arguments: pointers to the parameters, the
    sizes as 64-bit integers, pointers to the workspaces.

    pack: a second function in the text, which fills those workspaces that are packed before the calls.
    """

    name: str
    text: str
    params: tuple[ParamInfo, ...]
    workspaces: tuple[WorkspaceInfo, ...]
    sizes: tuple[str, ...] = ()
    pack: PackInfo | None = None

    @property
    def symbols(self) -> tuple[str, ...]:
        """The functions that the text defines for callers."""
        return (self.name,) if self.pack is None else (self.name, self.pack.symbol)
