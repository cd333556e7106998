"""`tilewright best export | import | check`: records of one store for another; whether they still apply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from .best import app
from .best_source import opened
from .exits import CommandError, Exit
from .new_file import new_file
from .options import AsJson, Db, database_url
from .output import say, show, show_json, show_lines
from .where import Place, takes

Out = Annotated[Path | None, typer.Option(help="A new file. [default: standard output]", show_default=False)]


@app.command("export")
@takes(Place)
def export(
    format_: Annotated[str, typer.Option("--format", help="lines, or t4 for the trials of a job.")] = "lines",
    job: Annotated[str | None, typer.Option(help="With --format t4: the job.", show_default=False)] = None,
    out: Out = None,
    *,
    where: Place,
) -> None:
    """All best-known schedules, a record a line, in the order of their keys; or, in the T4 format of the
    auto-tuning community, the trials of one job of a database."""
    if format_ not in ("lines", "t4") or (format_ == "t4") is not (job is not None):
        raise CommandError("give --format lines, or --format t4 with --job", Exit.USAGE)
    with opened(where) as source:
        if job is not None:
            if source.remote:
                raise CommandError("--format t4 reads a database: give --db", Exit.USAGE)
            from ..t4 import t4_results

            _write(out, json.dumps(t4_results(source.kept, job), indent=2).split("\n"))
            return
        if source.remote:
            _write(out, source.kept.export_lines())
        else:
            from ..schedule_lines import export_lines

            _write(out, export_lines(source.kept))


@app.command("import")
@takes(Place)
def import_(
    file: Annotated[Path, typer.Argument(help="Lines that `export` wrote.", show_default=False)],
    *,
    where: Place,
    as_json: AsJson = False,
) -> None:
    """Take records of another store in. Bad lines are named and skipped; the command then ends with 1."""
    try:
        # What is no text becomes U+FFFD, which fails the digest of its line: the others are taken.
        read = file.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", Exit.USAGE) from error
    with read, opened(where, create=True) as source:
        said = source.kept.import_lines(read) if source.remote else _imported(source.kept, read)
    counts = {name: getattr(said, name) for name in ("best", "challenger", "slower", "known")}
    for bad in said.refused:
        say(f"{file}:{bad.number}: {bad.reason}")
    words = ", ".join(f"{count} {name}" for name, count in counts.items())
    show(said.model_dump(), as_json, lambda: f"{words}, {len(said.refused)} refused")
    if said.refused:
        raise CommandError(f"{len(said.refused)} lines of {file} were refused")


@app.command("check")
def check(
    retire: Annotated[bool, typer.Option("--retire", help="Retire what does not apply any more.")] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Replay every best-known schedule of a database with this compiler. Ends with 1 where one fails."""
    from ..judging import why_not

    failed: list[dict[str, Any]] = []
    count = 0
    with opened(Place(db=database_url(db))) as source:
        for kept in _all(source.kept):
            count += 1
            reason = why_not(kept.program, kept.description, kept.schedule.trace)
            if reason is not None:
                failed.append({"trial": kept.schedule.trial, "reason": reason})
                say(f"{kept.schedule.trial}: {reason}")
                if retire:
                    source.kept.retire(kept.schedule.trial, reason)
    if as_json:
        show_json({"checked": count, "failed": failed})
    else:
        say(f"{count} schedules, {len(failed)} of which do not apply")
    if failed:
        raise CommandError(f"{len(failed)} of {count} schedules do not apply")


def _imported(store: Any, lines: TextIO) -> Any:
    from ..schedule_lines import import_lines
    from ..wiring import CompilerParser

    return import_lines(store, CompilerParser(), lines)


def _all(store: Any) -> Iterator[Any]:
    after: str | None = None
    while True:
        page = store.kept(after)
        yield from page.items
        after = page.next
        if after is None:
            return


def _write(out: Path | None, lines: Any) -> None:
    if out is None:
        show_lines(lines)
        return
    with new_file(out) as file:
        file.writelines(line + "\n" for line in lines)
