"""`tilewright best`: the best-known schedule of a workload."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ...db.errors import StoreUnavailable
from ..connect import connect
from .exits import CommandError, Exit
from .options import AsJson, Db, InsecureHttp, TokenFile, Url, settings_of
from .output import show
from .progress import speed
from .tune import Target, script_of
from .workload_argument import Workload, func_of


def best(
    workload: Workload,
    target: Target = "llvm",
    hardware: Annotated[
        str | None, typer.Option(help="A hardware key. [default: this machine's]", show_default=False)
    ] = None,
    url: Url = None,
    token_file: TokenFile = None,
    insecure_http: InsecureHttp = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """The best-known schedule of WORKLOAD as Python, and how it was found. Ends with 1 when none is known."""
    from ...compiler import ir
    from ...compiler.target import Target as CompilerTarget
    from ...compiler.target import TargetError, detect

    if url is not None and db is not None:
        raise CommandError("--db is for a database here, --url for a server: give one of them", Exit.USAGE)
    settings = settings_of(url=url, db=db, token_file=token_file, insecure_http=insecure_http)
    func = func_of(workload)
    try:
        target_key = CompilerTarget.parse(target).key
    except TargetError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    where = settings.db if db is not None else settings.url
    token = None if settings.token is None else settings.token.get_secret_value()
    try:
        # To look something up makes no database.
        source = connect(where, token, insecure_http=settings.insecure_http, create=False)
    except StoreUnavailable as error:
        raise CommandError(f"no schedule is known for {func.name}: {error}") from error
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from error
    except ValueError as error:
        raise CommandError(str(error), Exit.SETTINGS) from error
    with source:
        found = source.best(ir.workload_key(func), target_key, hardware or detect().key)
    if found is None:
        raise CommandError(f"no schedule is known for {func.name} at {where}; `tilewright tune` finds one")
    gflops = ir.flop_count(func) / found.seconds / 1e9
    trace = found.trace
    document = {
        "kind": found.kind,
        "reason": found.reason,
        "seconds": found.seconds,
        "gflops": gflops,
        "trace": json.loads(trace),
    }
    words = f"# {speed(found.seconds, gflops)} ({found.kind}{': ' + found.reason if found.reason else ''})"
    show(document, as_json, lambda: f"{words}\n{script_of(trace)}")
