"""Bearer tokens, of which only the SHA-256 is stored."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, insert, or_, select, update

from ..checks import check_int, check_limit, check_seconds, check_text, check_word
from ..errors import InvalidValue, NotFound
from ..records import NO_LIMITS, Page, Token, TokenLimits
from ..words import SCOPES, Scope
from .clock import epoch_now, now_of
from .part import Part, new_id
from .tables import tokens

_PREFIX = "tw_"


class TokenPart(Part):
    def create_token(
        self,
        name: str,
        scopes: Sequence[Scope],
        pool: str | None = None,
        expires_in: float | None = None,
        limits: TokenLimits = NO_LIMITS,
    ) -> tuple[Token, str]:
        check_text("name", name)
        if not scopes:
            raise InvalidValue("scopes", f"must not be empty; there are {', '.join(SCOPES)}")
        for scope in scopes:
            check_word("scopes", scope, SCOPES)
        if pool is not None:
            check_text("pool", pool)
        if expires_in is not None:
            check_seconds("expires_in", expires_in)
        _check_limits(limits)
        secret = _PREFIX + secrets.token_urlsafe(32)
        ordered = " ".join(scope for scope in SCOPES if scope in scopes)
        with self._database.write() as conn:
            now = now_of(conn)
            row = conn.execute(
                insert(tokens)
                .values(
                    id=new_id("token"), name=name, secret_sha256=_sha256(secret), scopes=ordered, pool=pool
                )
                .values(created_at=now, expires_at=None if expires_in is None else now + expires_in)
                .values(max_jobs=limits.max_jobs, max_trials=limits.max_trials, rate=limits.rate)
                .returning(tokens)
            ).one()
            return _token_of(row), secret

    def token_by_secret(self, secret: str) -> Token | None:
        alive = (
            tokens.c.revoked_at.is_(None),
            or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > epoch_now()),
        )
        digest = _sha256(secret)
        query = select(tokens).where(tokens.c.secret_sha256 == digest, *alive)
        with self._database.read() as conn:
            row = conn.execute(query).one_or_none()
        # The index compares digests, of which time tells nothing about a secret; this is for databases that
        # compare texts by their own rules.
        if row is None or not hmac.compare_digest(row.secret_sha256, digest):
            return None
        return _token_of(row)

    def tokens(self) -> list[Token]:
        with self._database.read() as conn:
            return [_token_of(row) for row in conn.execute(select(tokens).order_by(tokens.c.seq))]

    def tokens_page(self, after: str | None = None, limit: int = 50) -> Page[Token]:
        check_limit(limit)
        query = select(tokens).order_by(tokens.c.seq).limit(limit + 1)
        with self._database.read() as conn:
            if after is not None:
                seq = conn.execute(select(tokens.c.seq).where(tokens.c.id == after)).scalar_one_or_none()
                if seq is None:
                    raise InvalidValue("after", f"{after!r} is not the end of a page")
                query = query.where(tokens.c.seq > seq)
            found = tuple(_token_of(row) for row in conn.execute(query))
        items = found[:limit]
        return Page(items=items, next=items[-1].id if len(found) > limit else None)

    def revoke_token(self, token_id: str) -> Token:
        with self._database.write() as conn:
            first = func.coalesce(tokens.c.revoked_at, epoch_now())
            changed = update(tokens).where(tokens.c.id == token_id).values(revoked_at=first)
            row = conn.execute(changed.returning(tokens)).one_or_none()
            if row is None:
                raise NotFound("token", token_id)
            return _token_of(row)


def _token_of(row: Row[Any]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        scopes=tuple(row.scopes.split()),
        pool=row.pool,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        max_jobs=row.max_jobs,
        max_trials=row.max_trials,
        rate=row.rate,
    )


def _check_limits(limits: TokenLimits) -> None:
    for name in ("max_jobs", "max_trials"):
        if getattr(limits, name) is not None:
            check_int(name, getattr(limits, name), 0)
    if limits.rate is not None:
        check_seconds("rate", limits.rate)


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
