"""The part of a store's contract that devices without a compiler need: artifacts, and builds that make
them."""

from collections.abc import Collection, Sequence
from typing import Protocol

from .build_records import BuildCounts, BuildItem, BuildResult

MAX_BUILD_ITEMS = 16
MAX_LOST_BUILDERS = 3
"""So many builders lost while they made an artifact make it a failed build."""


class BuildStore(Protocol):
    """At-least-once dispatch of builds, effectively-once settlement, as with leases; one build at most for
    each artifact that somebody waits for."""

    def claim_builds(self, builder: str, max_items: int, ttl: float) -> list[BuildItem]:
        """Take up to `max_items` (at most MAX_BUILD_ITEMS) builds that queued trials need before a device can
        run them; empty where there is none.

        Trials need them where their job's hardware is that of an online worker that only runs. Data comes
        before programs, then the lowest job and number. Expired grants are swept first.
        """

    def renew_builds(self, builder: str, builds: Sequence[tuple[str, int]], ttl: float) -> None:
        """Keep these grants (build and attempt) for `ttl` seconds from now; those that are not this builder's
        any more are left alone."""

    def settle_build(self, builder: str, build: str, attempt: int, result: BuildResult) -> None:
        """Take the result of a grant. The same one again has no effect.

        A failed program settles its queued trials with that failure, failed data all trials of the workload
        and seed; no device sees them. LeaseLost where the build was granted to another since; InvalidValue
        for an artifact that was not put. A late result of a build that nobody has taken since is accepted.
        """

    def release_builds(self, builder: str) -> int:
        """Give back what a builder holds; it counts for nothing. How many there were."""

    def put_artifact(self, sha256: str, data: bytes, most_bytes: int) -> None:
        """Keep bytes under their SHA-256; known ones stay as they are.

        InvalidValue where it is not theirs. Where all artifacts would come to more than `most_bytes`, those
        used longest ago go first, but none that was used in the last hour; StoreFull where too few are left.
        """

    def artifact(self, sha256: str) -> bytes:
        """The bytes of an artifact."""

    def built_for(self, kinds: Collection[str]) -> set[str]:
        """The keys, among these of kinds of hardware, for which a queued trial has its artifacts, or cannot
        have them."""

    def build_counts(self) -> BuildCounts: ...
