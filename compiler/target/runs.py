"""Whether this machine can run code for a target."""

import sys

from .errors import TargetError
from .host import architecture, host_cpu
from .target import Target
from .triple import system_of

_OWN = "windows" if sys.platform == "win32" else sys.platform


def missing_features(target: Target) -> tuple[str, ...]:
    """What this machine lacks to run the target's code: features, or the architecture, or the system of its
    triple. Nothing of a kind without processors, whose plug-in knows.
    """
    if not target.mcpu:
        return ()
    if target.architecture != architecture():
        return (target.architecture,)
    given = dict(target.attributes).get("mtriple", "")
    if given and system_of(given) != _OWN:
        return (given,)
    try:
        return tuple(sorted(set(target.features) - host_cpu().features))
    except TargetError:
        return (target.architecture,)


def refusal(target: Target) -> str | None:
    """Why the target's code cannot run on this machine; None where it can."""
    missing = missing_features(target)
    if not missing:
        return None
    return f"code for {target.mcpu} cannot run on this machine, which lacks {', '.join(missing)}"
