"""The compiler: tensor expressions, the IR, schedules, the search space, code generation and the runtime."""

from .codegen.version import CODEGEN_VERSION

__all__ = ["CODEGEN_VERSION"]
