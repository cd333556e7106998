"""Who serves a database."""

from contextlib import AbstractContextManager

from ..checks import check_text
from ..leadership import Leadership
from .part import Part


class ServingPart(Part):
    def serving(self, who: str) -> AbstractContextManager[None]:
        check_text("who", who)
        return self._database.serving(who)

    def leadership(self, silence: float) -> Leadership:
        return self._database.leadership(silence)
