"""What code generation gives."""

from __future__ import annotations

from dataclasses import dataclass

from ..runtime import ParamInfo, WorkspaceInfo


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel as text: the function's name, the text, and its arguments, the parameters first and then the
    workspaces.
    """

    name: str
    text: str
    params: tuple[ParamInfo, ...]
    workspaces: tuple[WorkspaceInfo, ...]
