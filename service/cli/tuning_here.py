"""What commands share that search on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .exits import CommandError, Exit

if TYPE_CHECKING:
    from ...db import Store


@contextmanager
def tuning_here(db: str) -> Iterator[Store]:
    """The store to record into. What a search refuses, and a part that is not installed, ends the command as
    a CommandError."""
    try:
        from ...compiler.target import TargetError
        from ...db import open_store
        from ...measure.errors import MeasureError
        from ...tuner.errors import TuningError

        store = open_store(db)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"tuning here needs {error.name}, which is not installed: pip install 'tilewright[server]'"
        ) from error
    with store:
        try:
            yield store
        except (TargetError, ValueError) as error:
            raise CommandError(str(error), Exit.USAGE) from error
        except (TuningError, MeasureError) as error:
            raise CommandError(str(error)) from error
