"""`tilewright best`: best-known schedules. Without a verb, `show`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..schedule_views import ExplanationView, ScheduleView
from .best_source import key_of, opened
from .exits import CommandError, Exit
from .options import AsJson
from .output import show, table
from .progress import speed
from .tune import Target, script_of
from .where import Place, takes
from .workload_argument import KnownWorkload, func_of, is_key

Hardware = Annotated[
    str | None, typer.Option(help="A hardware key. [default: this machine's]", show_default=False)
]


class _ShowsByDefault(TyperGroup):
    """`tilewright best WORKLOAD` is `tilewright best show WORKLOAD`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(name="best", help="Best-known schedules.", no_args_is_help=True, cls=_ShowsByDefault)


@app.command("show")
@takes(Place)
def best(
    workload: KnownWorkload,
    target: Target = "llvm",
    hardware: Hardware = None,
    allow: Annotated[
        str, typer.Option(help="What may be answered beside exact: same_family,transferred.")
    ] = "",
    freeze: Annotated[
        str | None, typer.Option(help="What was best-known when this freeze was made.", show_default=False)
    ] = None,
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """The best-known schedule of WORKLOAD as Python, and how it was found. Ends with 1 when none is known."""
    from ...compiler import ir

    func = None if is_key(workload) else func_of(workload)
    key = key_of(workload, target, hardware)
    kinds = _kinds(allow)
    wanted = f"no schedule is known for {key.name}"
    with opened(where, wanted=wanted) as source:
        key = source.whole(key)
        func = func or source.program(key)
        if source.remote:
            found = source.kept.best(*key.parts, freeze, allow=kinds)
        else:
            found = source.kept.best(*key.parts, freeze)
            if found is None and kinds and func is not None:
                found = _near(source.kept, func, target, key.hardware, kinds)
        looked = source.where
    if found is None:
        raise CommandError(f"no schedule is known for {key.name} at {looked}; `tilewright tune` finds one")
    if found.kind == "default":
        document = {"kind": "default", "reason": found.reason, "seconds": None, "gflops": None, "trace": None}
        show(document, as_json, lambda: f"# the default schedule: {found.reason}")
        return
    gflops = ir.flop_count(func) / found.seconds / 1e9 if func is not None and found.seconds else None
    trace = found.trace
    document = {
        "kind": found.kind,
        "reason": found.reason,
        "seconds": found.seconds,
        "gflops": gflops,
        "trace": json.loads(trace),
    }
    words = f"# {speed(found.seconds, gflops)} ({found.kind}{': ' + found.reason if found.reason else ''})"
    show(document, as_json, lambda: [words, *script_of(trace)])


@app.command("list")
@takes(Place)
def list_best(
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """All best-known schedules, in the order of their keys, and which row, or the default schedule, is pinned
    and served in their place."""
    with opened(where) as source:
        views = list(source.schedules())

    def human() -> list[str]:
        columns = ["workload", "target", "hardware", "trial", "time", "speed-up", "confirmed", "pinned"]
        return table(columns, [_row(view) for view in views])

    show([view.model_dump() for view in views], as_json, human)


@app.command("explain")
@takes(Place)
def explain(
    workload: KnownWorkload,
    target: Target = "llvm",
    hardware: Hardware = None,
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """Why WORKLOAD gets the schedule that it gets: what is served, with its evidence; what could be pinned;
    how it was decided; and what is not served any more."""
    key = key_of(workload, target, hardware)
    with opened(where) as source:
        said = source.explain(source.whole(key))
    show(said.model_dump(), as_json, lambda: _explained(said))


def _kinds(allow: str) -> tuple[str, ...]:
    from ...compiler.lookup import check_allowed

    try:
        return check_allowed([word for word in allow.split(",") if word])
    except ValueError as error:
        raise CommandError(f"--{error}", Exit.USAGE) from error


def _near(store: Any, func: Any, target: str, hardware: str, kinds: tuple[str, ...]) -> Any:
    """A schedule of another key that may do, as a lookup at a server gives it."""
    from dataclasses import replace

    import rfc8785

    from ...compiler.lookup import Misses, near
    from ...compiler.target import Target as CompilerTarget
    from ...compiler.target import detect
    from ...db.errors import NotFound

    here = detect()
    try:
        facts = here.facts if hardware == here.key else json.loads(store.hardware(hardware).facts)
    except NotFound as error:
        raise CommandError(str(error)) from error
    parsed = CompilerTarget.parse(target)
    for found in near(store, func, parsed, hardware, facts, kinds, Misses()):
        trace = rfc8785.dumps(found.schedule.trace.to_json()).decode()
        record: Any = found.record
        return replace(record, kind=found.kind, reason=found.reason, trace=trace)
    return None


def _row(view: ScheduleView) -> list[str]:
    keys = [view.workload[:12], view.target[:12], view.hardware[:12]]
    confirmed = "yes" if view.confirmed else "no"
    return [*keys, view.trial or "", _time(view), _faster(view), confirmed, _pinned(view)]


def _pinned(view: ScheduleView) -> str:
    """What is served in the place of a best-known schedule."""
    return "" if view.pin is None else view.pin.trial or "default"


def _time(view: ScheduleView) -> str:
    return "" if view.seconds is None else f"{view.seconds * 1e6:.1f} µs"


def _faster(view: ScheduleView) -> str:
    if view.speedup is None:
        return ""
    return f"{'>= ' if view.baseline and view.baseline.bound else ''}{view.speedup:.2f}"


def _explained(said: ExplanationView) -> list[str]:
    lines = [f"workload {said.workload}", f"target   {said.target}", f"hardware {said.hardware}"]
    if said.served is None:
        lines.append("no schedule is known")
    else:
        lines += [f"served: {said.served.kind}: {said.served.reason}", *_evidence(said.served)]
    if said.standing is not None and (said.served is None or said.standing.trial != said.served.trial):
        lines += [f"best-known without the pin: trial {said.standing.trial}", *_evidence(said.standing)]
    if said.rows:
        rows = [[row.trial or "", _time(row), row.worker or "", _date(row.measured_at)] for row in said.rows]
        lines += table(["row", "time", "worker", "measured"], rows)
    for duel in said.duels:
        beaten = ", ".join(one for one in duel.times if one != duel.winner)
        lines.append(f"{_date(duel.at)}: {duel.winner} was timed against {beaten} on one device and won")
    lines += [f"{_date(one.at)}: {one.trial} was retired: {one.reason}" for one in said.retired]
    return lines


def _evidence(view: ScheduleView) -> list[str]:
    spread = ""
    if view.dispersion is not None:
        spread = f", spread {view.dispersion:.1%} over {len(view.samples)} samples"
    lines = []
    if view.trial is not None:
        lines.append(f"  row {view.trial}: {_time(view)}{spread}, on {view.worker or 'this machine'}")
        lines.append(f"  measured {_date(view.measured_at)}, code generator {view.codegen}")
    if view.search is not None:
        lines.append(f"  search: {view.search.done} of {view.search.asked} trials, {view.search.state}")
    if view.speedup is not None:
        lines.append(f"  {_faster(view)} times as fast as the default schedule")
    who = f"by worker {view.confirmation.worker}" if view.confirmation else "by no second device"
    lines.append(f"  confirmed {who}")
    if view.challenger is not None:
        lines.append(f"  challenged by {view.challenger.trial}, which was not timed against it yet")
    return lines


def _date(at: float | None) -> str:
    from datetime import UTC, datetime

    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
