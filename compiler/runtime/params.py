"""What a kernel says about its parameters."""

from dataclasses import dataclass

from .dims import Dim, text


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter: its dtype by name ("bool" is stored as bytes), its shape, which may be over sizes, and
    whether the kernel writes it. is_constant: its contents are known before the calls.
    """

    name: str
    dtype: str
    shape: tuple[Dim, ...]
    is_output: bool
    is_constant: bool = False

    def __str__(self) -> str:
        arrow = " out" if self.is_output else " constant" if self.is_constant else ""
        return f"{self.name}: {self.dtype}[{', '.join(map(text, self.shape))}]{arrow}"
