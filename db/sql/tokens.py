"""Bearer tokens, of which only the SHA-256 is stored."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, insert, or_, select, update

from ..checks import check_seconds, check_text, check_word
from ..errors import InvalidValue, NotFound
from ..records import Token
from ..words import SCOPES, Scope
from .clock import epoch_now, now_of
from .part import Part, new_id
from .tables import tokens

_PREFIX = "twk_"


class TokenPart(Part):
    def create_token(
        self, name: str, scopes: Sequence[Scope], pool: str | None = None, expires_in: float | None = None
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
                .returning(tokens)
            ).one()
            return _token_of(row), secret

    def token_by_secret(self, secret: str) -> Token | None:
        alive = (
            tokens.c.revoked_at.is_(None),
            or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > epoch_now()),
        )
        query = select(tokens).where(tokens.c.secret_sha256 == _sha256(secret), *alive)
        with self._database.read() as conn:
            row = conn.execute(query).one_or_none()
        return None if row is None else _token_of(row)

    def tokens(self) -> list[Token]:
        with self._database.read() as conn:
            return [_token_of(row) for row in conn.execute(select(tokens).order_by(tokens.c.seq))]

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
    )


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
