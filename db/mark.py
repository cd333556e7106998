"""What tells whether anything in a store has changed."""

from typing import Self


class Mark(str):
    """A text for the whole store. `tokens`: one that need change only where a token was made or revoked."""

    __slots__ = ("tokens",)

    tokens: str

    def __new__(cls, text: str, tokens: str | None = None) -> Self:
        made = super().__new__(cls, text)
        made.tokens = text if tokens is None else tokens
        return made
