"""What code generation gives."""

from __future__ import annotations

from dataclasses import dataclass

from ..runtime import ParamInfo, WorkspaceInfo


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel as text: the function's name, the text, and its arguments: pointers to the parameters, the
    sizes as 64-bit integers, pointers to the workspaces.
    """

    name: str
    text: str
    params: tuple[ParamInfo, ...]
    workspaces: tuple[WorkspaceInfo, ...]
    sizes: tuple[str, ...] = ()
