"""Where the work of a builder beside its database comes from."""

from __future__ import annotations

import time
from pathlib import Path

from ..db.errors import LeaseLost as StoreLeaseLost
from ..db.errors import StoreError, StoreUnavailable
from ..db.store import Store
from ..measure.messages import LeaseLost, SourceError, SourceRefused, SourceUnreachable
from ..measure.run_only.messages import BuildAnswer, BuildLease
from .build_calls import BUILD_SECONDS, build_lease, build_result
from .settings import Settings

_LOOK_EVERY = 0.1


class StoreBuilds:
    """A BuildSource on a store."""

    def __init__(self, store: Store, settings: Settings, name: str) -> None:
        self._store = store
        self._settings = settings
        self._name = name

    def claim(self, max_items: int, wait_seconds: float) -> BuildLease | None:
        ends = time.monotonic() + wait_seconds
        while True:
            try:
                items = self._store.claim_builds(self._name, max_items, BUILD_SECONDS)
            except StoreError as error:
                raise _translated(error) from error
            if items:
                return build_lease(items, self._settings)
            if time.monotonic() >= ends:
                return None
            time.sleep(_LOOK_EVERY)

    def renew(self, builds: list[tuple[str, int]]) -> None:
        try:
            self._store.renew_builds(self._name, builds, BUILD_SECONDS)
        except StoreError as error:
            raise _translated(error) from error

    def put(self, sha256: str, path: Path) -> None:
        try:
            self._store.put_artifact(sha256, path.read_bytes(), self._settings.artifact_store_bytes)
        except StoreError as error:
            raise _translated(error) from error

    def settle(self, answer: BuildAnswer) -> None:
        try:
            self._store.settle_build(self._name, answer.build, answer.attempt, build_result(answer))
        except StoreError as error:
            raise _translated(error) from error

    def release(self) -> None:
        try:
            self._store.release_builds(self._name)
        except StoreError as error:
            raise _translated(error) from error


def _translated(error: StoreError) -> SourceError:
    if isinstance(error, StoreUnavailable):
        return SourceUnreachable(str(error))
    if isinstance(error, StoreLeaseLost):
        return LeaseLost(str(error))
    return SourceRefused(str(error))
