"""The part of a store's contract that the HTTP service needs for itself."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from .records import Page
from .service_records import AuditEntry, Census, NewAudit, StoredAnswer


class ServiceStore(Protocol):
    """Calls that are stored together, answers to repeat, quotas, the audit log."""

    def together(self) -> AbstractContextManager[None]:
        """The calls of this thread within the context are one transaction: all of them are stored, or, where
        one raises and nobody catches it, none.

        It begins with the first call that writes. What was written within is seen within. Neither wait nor
        compute in it after the first write: others cannot write meanwhile.
        """

    def answer(self, key: str) -> StoredAnswer | None:
        """The answer kept under this key that has not expired."""

    def keep_answer(self, key: str, answer: StoredAnswer, seconds: float) -> None:
        """Keep an answer for so long. Conflict where one is kept under the key: then the transaction that
        this belongs to has an effect that was had before, and must not be stored.

        Some answers that have expired are forgotten on the way.
        """

    def refuse_over_quota(self, owner: str | None, max_jobs: int | None, max_trials: int | None) -> None:
        """QuotaExceeded where the owner's unfinished jobs, or their trials without a result, are more than
        these. Within the transaction that makes them more, it is not stored then; such transactions of one
        owner wait for each other. None: no such limit."""

    def add_audit(self, entry: NewAudit) -> None:
        """Append to the audit log. Texts that are too long are cut."""

    def audit(self, actor: str | None = None, after: int | None = None, limit: int = 50) -> Page[AuditEntry]:
        """The log, the newest first, of this actor alone if one is given. `after`: below this `seq`."""

    def watch(self, observer: Callable[[str, float], None]) -> None:
        """From now on tell `observer` of each transaction: `read` or `write`, and the seconds it took."""

    def census(self) -> Census:
        """For metrics. Its cost does not grow with the trials that have a result."""
