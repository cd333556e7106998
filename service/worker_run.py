"""A worker from its device's lock to its exit code."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from ..measure.device_lock import DeviceBusy, DeviceLock
from ..measure.errors import MeasureError
from ..measure.exits import Exit
from ..measure.interrupts import interrupting
from ..measure.messages import SourceUnreachable
from ..measure.patience import Patience
from .transport import Transport
from .worker_client import WorkerClient
from .worker_setup import WorkerSetup

__all__ = ["run_worker"]


def run_worker(
    setup: WorkerSetup, transport: Transport, lock: DeviceLock, say: Callable[[str], None]
) -> Exit:
    """Works until drained, on its device alone. What ends it early is said. Raises NotATilewright where
    something else answers."""
    try:
        if not _has_device(lock, setup.settings.worker_wait_for_device, say):
            return Exit.DRAINED
        setup.device.pin()
        return _work(setup, transport, say)
    except DeviceBusy as error:
        say(f"{error}: end that one, give this one other processors with --device, or --wait-for-device")
        return Exit.DEVICE_BUSY
    except MeasureError as error:
        say(f"nothing can be measured here: {error}")
        return Exit.FAILED


def _has_device(lock: DeviceLock, may_wait: bool, say: Callable[[str], None]) -> bool:
    """Whether this worker has its device; not where it was told to end before."""
    ended = threading.Event()
    with interrupting(ended.set):
        return lock.wait(math.inf if may_wait else 0.0, ended.is_set, say)


def _work(setup: WorkerSetup, transport: Transport, say: Callable[[str], None]) -> Exit:
    from ..measure.runner import Runner
    from ..measure.worker import run

    settings = setup.settings
    try:
        transport.handshake()
    except SourceUnreachable as error:
        say(f"{error}; trying for {settings.worker_attach_seconds:g} s")
    hello = setup.hello()
    with Runner() as runner:
        return run(
            WorkerClient(transport),
            runner,
            hello,
            batch=settings.worker_batch,
            patience=Patience(attach=settings.worker_attach_seconds),
            say=say,
        )
