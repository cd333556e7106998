"""C11 code generation: the kind `c`."""

from .generator import CGenerator, generator

__all__ = ["CGenerator", "generator"]
