"""`tilewright config`: what is set, and where."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import typer
from pydantic import SecretStr

from ..settings import Settings, load
from .options import AsJson
from .output import show, table

app = typer.Typer(name="config", help="Settings.", no_args_is_help=True)


@app.command("show")
def show_config(as_json: AsJson = False) -> None:
    """Every setting with its value and where it came from: environment, file or default."""
    loaded = load()
    values = {key: _shown(key, getattr(loaded.settings, key)) for key in Settings.model_fields}

    def human() -> list[str]:
        rows = [[key, str(value), loaded.sources[key]] for key, value in values.items()]
        return table(["setting", "value", "source"], rows)

    as_objects = {key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()}
    show(as_objects, as_json, human)


def _shown(key: str, value: Any) -> Any:
    """The value, without what is secret in it."""
    if isinstance(value, SecretStr):
        return "********"
    if key in ("db", "url") and (password := urlsplit(value).password):
        return value.replace(f":{password}@", ":********@")
    return value
