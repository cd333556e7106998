"""Errors of calling a kernel."""


class ArgumentError(Exception):
    """An array that a kernel cannot take. The message names the kernel, the argument and what would be
    right.
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """Not an array, or not as many as the kernel takes, or an array of another dtype."""


class ArgumentValueError(ArgumentError, ValueError):
    """An array whose shape or memory a kernel cannot take."""
