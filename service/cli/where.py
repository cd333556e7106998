"""Where a command looks: options that many commands have, in one place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from ..client import Client
from ..settings import Loaded, Settings, load
from .options import Db, InsecureHttp, TokenFile, Url, flags_of, open_client, settings_of

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and with what token it is asked; what is not said is a setting."""

    url: Url = None
    token_file: TokenFile = None
    insecure_http: InsecureHttp = False

    def settings(self) -> Settings:
        """See `settings_of`."""
        return settings_of(url=self.url, token_file=self.token_file, insecure_http=self.insecure_http)

    def client(self) -> Client:
        return open_client(self.settings())


@dataclass(frozen=True, slots=True)
class Place(Server):
    """A database here, or else a server."""

    db: Db = None

    def settings(self) -> Settings:
        return self.loaded().settings

    def loaded(self, unused: Collection[str] = ()) -> Loaded:
        """The settings, and where each was said. See `settings_of`, and `load` of `unused`."""
        flags = flags_of(
            url=self.url, db=self.db, token_file=self.token_file, insecure_http=self.insecure_http
        )
        return load(flags, unused=unused)


def takes(kind: type[Server]) -> Callable[[Command], Command]:
    """Give a command the fields of `kind` as options, of which its keyword `where` is made."""
    hints = get_type_hints(kind, include_extras=True)
    options = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
    ]

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += options if parameter.name == "where" else [parameter]

        @functools.wraps(command)
        def with_options(**said: Any) -> None:
            where = kind(**{option.name: said.pop(option.name) for option in options})
            command(**said, where=where)

        # Typer reads these two of a command.
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_options

    return decorate
