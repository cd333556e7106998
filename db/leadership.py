"""Which of several processes decides for all of them: at most one at a time."""

from typing import Protocol


class Leadership(Protocol):
    """A lock that ends with the process that holds it, however that ends."""

    def leads(self) -> bool:
        """Whether the lock is this process', which takes it where nobody has it, and keeps it by asking again
        before it counts as lost. Raises StoreUnavailable, and then has it no more."""

    def close(self) -> None:
        """Give it up. May be repeated."""


class Alone:
    """The leadership of a process that is known to be the only one."""

    def leads(self) -> bool:
        return True

    def close(self) -> None:
        return
