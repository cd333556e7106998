"""Generators that ask, driven by whoever answers: a loop for those who wait, and one for those who await."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


def answered(asking: Generator[Q, A, T], answer: Callable[[Q], A]) -> T:
    """What `asking` returns, once each thing that it yields has its answer. An error of `answer` is raised
    where it was asked: the one who asks may know it."""
    try:
        asked = next(asking)
        while True:
            try:
                said = answer(asked)
            except Exception as error:
                asked = asking.throw(error)
            else:
                asked = asking.send(said)
    except StopIteration as end:
        value: T = end.value
        return value


async def answered_async(asking: Generator[Q, A, T], answer: Callable[[Q], Awaitable[A]]) -> T:
    """The same where answers are awaited."""
    try:
        asked = next(asking)
        while True:
            try:
                said = await answer(asked)
            except Exception as error:
                asked = asking.throw(error)
            else:
                asked = asking.send(said)
    except StopIteration as end:
        value: T = end.value
        return value
