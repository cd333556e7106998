"""Which results are believed."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, exists, or_

from .tables import doubts, retimings, trials


def is_doubted(of: FromClause = trials) -> ColumnElement[bool]:
    """Whether a trial's time is not believed: the worker that settled it was doubted then, or one that timed
    it again, where those times are what it has now. `of`: the trials, or an alias of them."""
    timed_again = exists().where(
        retimings.c.trial == of.c.id,
        retimings.c.outcome == "ok",
        doubts.c.worker == retimings.c.worker,
        _within(retimings.c.settled_at),
    )
    settled = exists().where(doubts.c.worker == of.c.worker, _within(of.c.settled_at))
    return or_(settled, and_(of.c.first_seconds.is_not(None), timed_again))


def _within(settled_at: ColumnElement[Any]) -> ColumnElement[bool]:
    ended = or_(doubts.c.until.is_(None), settled_at < doubts.c.until)
    return and_(settled_at >= doubts.c.since, ended)
