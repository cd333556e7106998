"""Which targets and machines are of one family, so that a schedule of the one may serve the other."""

from collections.abc import Mapping
from typing import Any

from .errors import TargetError
from .features import with_needs
from .target import Target


def why_not_family(
    known: Target, known_facts: Mapping[str, Any], target: Target, facts: Mapping[str, Any]
) -> str | None:
    """Why a schedule for `known`, measured on a machine of `known_facts`, is not one of the family of
    `target` on a machine of `facts`; None where it is.

    A family: targets of one kind that compute alike (math, threads, the kind's own attributes), on machines
    of one architecture and vendor; and the machine has every feature that code for `known` needs.
    """
    for name in ("kind", "math", "num_threads", "attributes"):
        was, wanted = getattr(known, name), getattr(target, name)
        if was != wanted:
            return f"{name.replace('_', '-')} differs ({_word(was)}, not {_word(wanted)})"
    for name in ("architecture", "vendor"):
        was, here = known_facts.get(name), facts.get(name)
        if was is None or was != here:
            return f"{name} differs ({_word(was)}, not {_word(here)})"
    missing = _missing(known, facts.get("features"))
    return f"isa differs ({', '.join(missing)})" if missing else None


def _missing(target: Target, features: Any) -> list[str]:
    if not target.mcpu:
        return []
    try:
        has = with_needs(target.architecture, features or ())
    except (TargetError, TypeError):
        has = frozenset()
    return sorted(set(target.features) - has)


def _word(value: object) -> str:
    return "unknown" if value is None else str(value)
