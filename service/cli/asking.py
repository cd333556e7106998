"""Whether something is meant that cannot be taken back."""

from __future__ import annotations

import sys

import typer

from .exits import CommandError, Exit
from .output import visible


def confirm(yes: bool, question: str) -> None:
    """Asks on stderr, so that stdout stays data. Without a terminal only --yes is a yes. Raises CommandError
    for every other answer."""
    if yes:
        return
    question = visible(question)
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Say --yes: there is no terminal to ask", Exit.USAGE)
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was changed", Exit.FAILED)
