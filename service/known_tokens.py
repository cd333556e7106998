"""Tokens of requests, read from the store once for as long as it has not changed."""

from __future__ import annotations

import hashlib
import time

from starlette.concurrency import run_in_threadpool

from ..db.mark import Mark
from .auth import KnownToken, TokenReader
from .fresh import Fresh


class KnownTokens:
    """Keeps no secret: tokens stand under the SHA-256 of theirs."""

    def __init__(self, tokens: TokenReader, fresh: Fresh) -> None:
        self._tokens = tokens
        self._fresh = fresh

    async def mark(self) -> Mark:
        """The store's mark, read after this call."""
        return await self._fresh.mark()

    async def by_secret(self, secret: str, mark: Mark) -> KnownToken | None:
        """The token with this secret, as it stands at this mark of the store; None where there is none, it
        was revoked, or has expired."""
        digest = hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
        token, ends = await self._fresh.get(("token", digest), lambda: self._read(secret), mark.tokens)
        if ends is not None and time.monotonic() >= ends:
            return await run_in_threadpool(self._tokens.token_by_secret, secret)
        return token

    def _read(self, secret: str) -> tuple[KnownToken | None, float | None]:
        """The token, and until when by this process' clock that is all there is to know of it."""
        token = self._tokens.token_by_secret(secret)
        if token is None or token.expires_at is None:
            return token, None
        return token, time.monotonic() + token.expires_at - self._tokens.now()
