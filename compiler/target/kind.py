"""Kinds of targets: what a target may say, by kind. The built-in ones are the table below."""

from dataclasses import dataclass

from .attributes import Attribute


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of target, such as ``llvm``.

    name: what a description begins with. attributes: the kind's own, beside those of processors; one at its
    default is left out of a target's key, so that a later attribute changes no key. processor: whether code
    of this kind runs on a processor of the table, and the target has mcpu, features and cache sizes.
    vector_bytes, vector_registers: what schedules are made for where no processor says. confined: whether it
    builds without files and other programs, as the process has to that measures a candidate.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()
    processor: bool = True
    vector_bytes: int = 16
    vector_registers: int = 16
    confined: bool = True


KINDS = {
    kind.name: kind
    for kind in (
        TargetKind("c", confined=False),
        TargetKind("llvm", (Attribute("mtriple", "str", ""),)),
    )
}
"""The kinds of this distribution. Others come with plug-ins: see registry."""
