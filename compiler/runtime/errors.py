"""Errors of calling a kernel and of loading one."""


class ArgumentError(Exception):
    """An array that a kernel cannot take. The message names the kernel, the argument and what would be
    right.
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """Not an array, or not as many as the kernel takes, or an array of another dtype."""


class ArgumentValueError(ArgumentError, ValueError):
    """An array whose shape or memory a kernel cannot take."""


class CallError(Exception):
    """A kernel that cannot be called in this process: made for another machine, or one of several."""


class LoadError(Exception):
    """A file that is no module, was damaged, or holds code that this machine cannot run. The message begins
    with the file's name.
    """
