"""Kernels as whole programs: static ELF executables for Linux that need no library, no loader and no linker.

A device without a compiler runs one as a process of its own (measure/run_only). What it does, and what it
says on its descriptors, stands in `harness`.
"""

from .layout import Layout
from .program import MOST_MEMORY, standalone_program

__all__ = ["MOST_MEMORY", "Layout", "standalone_program"]
