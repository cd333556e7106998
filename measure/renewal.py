"""Keeps a lease alive while its items are measured."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Self

from .messages import JobSource, Lease, LeaseUpdate, SourceError, SourceUnreachable


class Renewal:
    """A context manager around the work on one lease: a thread renews it every `renew_seconds`.

    `heard` is called, in that thread, with each update; `failed`, once, when renewing is over before the work
    is: with LeaseLost, with an error that ends the worker, or with a bug as a SourceError that holds its
    traceback. A source out of reach is asked again: whether the lease still stands is for the service to say.
    """

    def __init__(
        self,
        source: JobSource,
        lease: Lease,
        heard: Callable[[LeaseUpdate], None],
        failed: Callable[[SourceError], None],
    ) -> None:
        self._source = source
        self._lease = lease
        self._heard = heard
        self._failed = failed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"renew {lease.lease}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._over.wait(self._lease.renew_seconds):
            try:
                self._heard(self._source.renew(self._lease.lease))
            except SourceUnreachable:
                continue
            except SourceError as error:
                return self._failed(error)
            except Exception:  # the thread's edge: a bug must not pass in silence
                return self._failed(SourceError(traceback.format_exc()))
