"""Where the commands of `tilewright best` look: a database here, or a server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...db.errors import StoreUnavailable
from ..client import Client
from ..connect import connect
from ..schedule_presenter import explain, pin_view, schedule_view
from ..schedule_views import ExplanationView, PinView, ScheduleView
from .exits import CommandError, Exit
from .options import NO_TOKEN
from .where import Place
from .workload_argument import WHOLE_KEY, func_of, is_key

if TYPE_CHECKING:
    from ...compiler.ir import PrimFunc


@dataclass(frozen=True, slots=True)
class Key:
    """What a schedule is looked up by; `name` is the workload's. `workload` may be the start of its key,
    which `Source.whole` completes."""

    name: str
    workload: str
    target: str
    hardware: str

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.workload, self.target, self.hardware


class Source:
    """A store or a client of a server, by what the commands need of either."""

    def __init__(self, kept: Any, where: str) -> None:
        self.kept = kept
        self.where = where

    @property
    def remote(self) -> bool:
        return isinstance(self.kept, Client)

    def explain(self, key: Key) -> ExplanationView:
        return self.kept.explain(*key.parts) if self.remote else explain(self.kept, *key.parts)

    def schedules(self) -> Iterator[ScheduleView]:
        if self.remote:
            yield from self.kept.schedules()
            return
        after: str | None = None
        while True:
            page = self.kept.kept(after)
            yield from (schedule_view(one.schedule) for one in page.items)
            after = page.next
            if after is None:
                return

    def whole(self, key: Key) -> Key:
        """The key with all digits of its workload, of which a schedule is known or pinned. Raises
        CommandError where the start of it is that of none, or of several."""
        if len(key.workload) == WHOLE_KEY:
            return key
        known = {one.workload for one in self.schedules()} | {one.workload for one in self.pins()}
        meant = sorted(each for each in known if each.startswith(key.workload))
        if not meant:
            raise CommandError(f"no schedule at {self.where} is of a workload {key.workload}…")
        if len(meant) > 1:
            raise CommandError(
                f"{key.workload} begins the keys of {len(meant)} workloads, such as {meant[0]} and "
                f"{meant[1]}: give more digits",
                Exit.USAGE,
            )
        return replace(key, workload=meant[0])

    def program(self, key: Key) -> PrimFunc | None:
        """The program of a workload that a database here knows."""
        from ...compiler import ir
        from ...db.errors import NotFound

        if self.remote:
            return None
        try:
            return ir.from_json(json.loads(self.kept.workload(key.workload).program))
        except NotFound:
            return None

    def pins(self) -> list[PinView]:
        return self.kept.pins() if self.remote else [pin_view(pin) for pin in self.kept.pins()]


@contextlib.contextmanager
def opened(
    place: Place,
    *,
    create: bool = False,
    wanted: str = "no schedule is known",
) -> Iterator[Source]:
    """The database of `--db` or the server of `--url`; without either the database where that alone is set,
    else the server. To look something up makes no database."""
    if place.url is not None and place.db is not None:
        raise CommandError("--db is for a database here, --url for a server: give one of them", Exit.USAGE)
    loaded = place.loaded(NO_TOKEN)
    only_db = loaded.sources["url"] == "default" != loaded.sources["db"]
    here = place.db is not None or only_db
    settings = loaded.settings if here else place.settings()
    where = settings.db if here else settings.url
    token = None if settings.token is None else settings.token.get_secret_value()
    try:
        source = connect(where, token, insecure_http=settings.insecure_http, create=create)
    except StoreUnavailable as error:
        raise CommandError(f"{wanted}: {error}") from error
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error
    except ValueError as error:
        raise CommandError(str(error), Exit.SETTINGS) from error
    with source:
        yield Source(source, where)


def key_of(workload: Any, target: str, hardware: str | None) -> Key:
    """The key of a workload argument on this machine's hardware, or another's."""
    from ...compiler import ir
    from ...compiler.target import Target, TargetError, detect

    try:
        parsed = Target.parse(target)
    except TargetError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    where = parsed.key, hardware or detect().key
    if is_key(workload):
        return Key(f"workload {workload[:12]}", workload, *where)
    func = func_of(workload)
    return Key(func.name, ir.workload_key(func), *where)
