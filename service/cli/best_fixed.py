"""`tilewright best pin | unpin | freeze | unfreeze | freezes | changes | retire`: what people fix."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..schedule_presenter import pin_view
from .asking import confirm
from .best import Hardware, app
from .best_source import key_of, opened
from .exits import CommandError, Exit
from .options import AsJson
from .output import show, table
from .tune import Target
from .where import Place, takes
from .workload_argument import KnownWorkload

Note = Annotated[str, typer.Option(help="Why, for people.")]
Name = Annotated[str, typer.Argument(help="The freeze.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command("pin")
@takes(Place)
def pin(
    workload: KnownWorkload,
    row: Annotated[str | None, typer.Argument(help="A trial, as `explain` lists them.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Pin the default schedule.")] = False,
    note: Note = "",
    target: Target = "llvm",
    hardware: Hardware = None,
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """Serve ROW's schedule for WORKLOAD from now on, whatever is faster; with --default the default one."""
    if (row is None) is not default:
        raise CommandError("give a row, or --default", Exit.USAGE)
    key = key_of(workload, target, hardware)
    with opened(where) as source:
        key = source.whole(key)
        if source.remote:
            view = source.kept.pin(*key.parts, row, note)
        else:
            view = pin_view(source.kept.pin(*key.parts, row, note, _me()))
    what = "the default schedule" if row is None else f"trial {row}"
    show(view.model_dump(), as_json, lambda: f"{what} is pinned for {key.name}")


@app.command("unpin")
@takes(Place)
def unpin(
    workload: KnownWorkload,
    target: Target = "llvm",
    hardware: Hardware = None,
    *,
    where: Place,
) -> None:
    """Serve what is best-known for WORKLOAD again. Ends with 1 where nothing was pinned."""
    key = key_of(workload, target, hardware)
    with opened(where) as source:
        key = source.whole(key)
        if not source.kept.unpin(*key.parts):
            raise CommandError(f"nothing is pinned for {key.name}")


@app.command("pins")
@takes(Place)
def pins(
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """All pins, oldest first."""
    with opened(where) as source:
        found = source.pins()
    rows = [
        [p.workload[:12], p.target[:12], p.hardware[:12], p.trial or "default", p.by, p.note] for p in found
    ]
    columns = ["workload", "target", "hardware", "trial", "by", "note"]
    show([pin.model_dump() for pin in found], as_json, lambda: table(columns, rows))


@app.command("freeze")
@takes(Place)
def freeze(
    name: Name,
    note: Note = "",
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """Remember under NAME which schedule is served for every key now; lookups may name it."""
    with opened(where) as source:
        made = source.kept.freeze(name, note) if source.remote else source.kept.freeze(name, note, _me())
    show(_plain(made), as_json, lambda: f"{made.name}: {made.count} schedules")


@app.command("unfreeze")
@takes(Place)
def unfreeze(
    name: Name,
    yes: Yes = False,
    *,
    where: Place,
) -> None:
    """Forget a freeze."""
    confirm(yes, f"Lookups that name {name!r} will find nothing any more. Forget it?")
    with opened(where) as source:
        if source.kept.unfreeze(name) is False:
            raise CommandError(f"there is no freeze {name!r}")


@app.command("freezes")
@takes(Place)
def freezes(
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """All freezes, oldest first."""
    with opened(where) as source:
        found = source.kept.freezes()
    rows = [[one.name, str(one.count), one.by, one.note] for one in found]
    show([_plain(one) for one in found], as_json, lambda: table(["freeze", "schedules", "by", "note"], rows))


@app.command("changes")
@takes(Place)
def changes(
    name: Name,
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """Keys whose best-known schedule is another than in freeze NAME; ends with 1 where there are some."""
    with opened(where) as source:
        found = source.kept.changed_since(name)
    rows = [[c.workload[:12], c.target[:12], c.hardware[:12], c.frozen, c.now or "none"] for c in found]
    columns = ["workload", "target", "hardware", "frozen", "now"]
    show([_plain(one) for one in found], as_json, lambda: table(columns, rows) if rows else "unchanged")
    if found:
        raise CommandError(f"{len(found)} schedules are others than in {name!r}")


@app.command("retire")
@takes(Place)
def retire(
    row: Annotated[str, typer.Argument(help="A trial, as `explain` lists them.")],
    reason: Annotated[str, typer.Option(help="Why, for people.")],
    yes: Yes = False,
    *,
    where: Place,
) -> None:
    """Never serve ROW's schedule again."""
    confirm(yes, f"The schedule of {row} will not be served again. Retire it?")
    with opened(where) as source:
        source.kept.retire(row, reason)


def _plain(record: Any) -> dict[str, Any]:
    from dataclasses import asdict, is_dataclass

    return asdict(record) if is_dataclass(record) and not isinstance(record, type) else record.model_dump()


def _me() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
