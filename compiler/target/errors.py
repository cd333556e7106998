"""The error of a target description."""


class TargetError(ValueError):
    """A target description that cannot be understood or cannot be compiled for.

    The message names the attribute, what came, and what is known.
    """
