"""`connect(url)`: where a program looks best-known schedules up, a database or a server."""

from __future__ import annotations

from ..db import Store, open_store, shown
from .client import Client

_DATABASES = ("sqlite", "postgresql", "postgresql+psycopg", "postgres")


def connect(
    url: str, token: str | None = None, *, insecure_http: bool = False, create: bool = True
) -> Client | Store:
    """A source of schedules for `tilewright.build(…, schedules=…)` and a store for `tilewright.tune(…,
    store=…)`.

    `sqlite:///relative.db`, `sqlite:////absolute.db` and `postgresql://user:password@host:port/database` open
    (and, with `create`, make or fill) a database, which needs the extra `tilewright[store]` or
    `tilewright[postgres]`; `http://host:port` is a tilewright server. A server is asked when a schedule is
    wanted, not here. Raises ModuleNotFoundError naming the extra, and ValueError for another kind of URL.
    """
    if not isinstance(url, str):
        raise TypeError(f"connect takes a URL such as sqlite:///tilewright.db, got {type(url).__name__}")
    scheme = url.partition(":")[0]
    if scheme in ("http", "https"):
        return Client(url, token, insecure_http=insecure_http)
    if scheme in _DATABASES:
        return open_store(url, create=create)
    raise ValueError(
        f"{shown(url)!r} is neither a database nor a server; expected sqlite:///tilewright.db, "
        "postgresql://user:password@host:port/database or http://host:port"
    )
