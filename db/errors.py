"""What a store raises. Every error survives pickling; its text is meant to be shown to a person."""

from difflib import get_close_matches

_SHOWN = 20


class StoreError(Exception):
    """Base of everything a store raises on purpose."""


class NotFound(StoreError):
    """The named row does not exist."""

    def __init__(self, noun: str, key: str) -> None:
        super().__init__(noun, key)
        self.noun = noun
        self.key = key

    def __str__(self) -> str:
        return f"there is no {self.noun} {self.key!r}"


class UnknownWorker(NotFound):
    """No worker has this name or id; `known` are the names that workers have."""

    def __init__(self, key: str, known: tuple[str, ...]) -> None:
        super().__init__("worker", key)
        self.args = (key, known)
        self.known = known

    def __str__(self) -> str:
        if not self.known:
            return f"there is no worker {self.key!r}, nor any other"
        alike = {name.casefold(): name for name in self.known}
        close = get_close_matches(self.key.casefold(), alike, 1)
        hint = f"did you mean {alike[close[0]]!r}? " if close else ""
        shown = ", ".join(self.known[:_SHOWN])
        rest = len(self.known) - _SHOWN
        return f"there is no worker {self.key!r}; {hint}workers: {shown}{f' and {rest} more' * (rest > 0)}"


class InvalidValue(StoreError, ValueError):
    """A value that came from outside cannot be stored; nothing of the call was stored."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class Conflict(StoreError):
    """The call may have been right once, but the database has moved on, or somebody else holds the row."""


class QuotaExceeded(StoreError):
    """The owner would have more than it may; nothing of the call was stored."""

    def __init__(self, what: str, has: int, most: int) -> None:
        super().__init__(what, has, most)
        self.what = what
        self.has = has
        self.most = most

    def __str__(self) -> str:
        return f"that would be {self.has} {self.what}, {self.most} are allowed: wait until some have ended"


class StaleSearch(Conflict):
    """A newer search of the job has begun; the caller must stop without writing anything more."""


class JobOver(Conflict):
    """The job is completed, exhausted, cancelled or failed and takes no more trials."""


class AlreadyComplete(JobOver):
    """The job is completed or exhausted: there is nothing to go on with unless its budget is extended."""


class LeaseLost(Conflict):
    """The lease expired, or its trials were granted to somebody else."""


class Superseded(Conflict):
    """A newer session of the same worker has registered; the older one must end."""


class NameRetired(Conflict):
    """A worker attaches under a name that was removed, and is never used again."""


class SettlementMismatch(StoreError):
    """The same attempt of a trial was settled before, with another result."""

    def __init__(self, trial: str, attempt: int) -> None:
        super().__init__(trial, attempt)
        self.trial = trial
        self.attempt = attempt

    def __str__(self) -> str:
        return f"attempt {self.attempt} of trial {self.trial} was already settled with another result"


class SchemaError(StoreError):
    """The database's schema is not the one that this program reads and writes."""


class StoreUnavailable(StoreError, ConnectionError):
    """The database cannot be reached, opened or locked."""


class NoDatabase(StoreUnavailable):
    """There is no database at the url, and none is to be made."""


class StoreFull(StoreUnavailable):
    """The database's disk is full; nothing of the call was stored."""
