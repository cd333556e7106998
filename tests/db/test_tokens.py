import time

import pytest
from sqlalchemy import select

from tilewright.db import InvalidValue, NotFound
from tilewright.db.records import Token
from tilewright.db.sql.tables import metadata

KNOWN = "jobs:write, schedules:read, schedules:write, worker, builder, admin"


def test_a_secret_finds_its_token(store):
    token, secret = store.create_token("lab", ["worker", "jobs:write"], pool="lab-b")
    assert token == Token(
        id=token.id,
        name="lab",
        scopes=("jobs:write", "worker"),
        pool="lab-b",
        created_at=token.created_at,
        expires_at=None,
        revoked_at=None,
    )
    assert store.token_by_secret(secret) == token


KNOWN = "jobs:write, schedules:read, schedules:write, worker, builder, admin"


@pytest.mark.parametrize("secret", ["", "tw_guess", "\ud800"])
def test_another_secret_finds_nothing(store, secret):
    store.create_token("lab", ["worker"])
    assert store.token_by_secret(secret) is None


def test_secrets_differ_and_are_not_stored(store):
    secrets = [store.create_token("lab", ["worker"])[1] for _ in range(2)]
    with store._database.read() as conn:
        stored = repr([conn.execute(select(table)).all() for table in metadata.sorted_tables])
    assert [secret in stored for secret in secrets] == [False, False]
    assert secrets[0] != secrets[1]


def test_an_expired_token_opens_nothing_but_is_listed(store):
    token, secret = store.create_token("lab", ["worker"], expires_in=0.01)
    time.sleep(0.03)
    assert (store.token_by_secret(secret), store.tokens()) == (None, [token])


def test_a_token_that_expires_later_is_valid(store):
    token, secret = store.create_token("lab", ["worker"], expires_in=60.0)
    assert store.token_by_secret(secret) == token
    assert token.expires_at == token.created_at + 60.0


def test_a_revoked_token_opens_nothing_and_stays_revoked(store):
    token, secret = store.create_token("lab", ["worker"])
    revoked = store.revoke_token(token.id)
    assert store.token_by_secret(secret) is None
    assert store.revoke_token(token.id) == revoked


def test_an_unknown_token_cannot_be_revoked(store):
    with pytest.raises(NotFound, match="there is no token 'token_0'"):
        store.revoke_token("token_0")


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ([], f"scopes: must not be empty; there are {KNOWN}"),
        (["root"], f"scopes: is 'root', which is none of {KNOWN}"),
    ],
)
def test_a_token_needs_scopes_that_exist(store, scopes, message):
    with pytest.raises(InvalidValue) as caught:
        store.create_token("lab", scopes)
    assert str(caught.value) == message
