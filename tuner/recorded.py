"""Spaces that were measured exhaustively and written down: a search on one needs no device.

The file format is JSON, gzipped or plain: `params` (names), `configs` (a list of integers each, in their
order) and `time_ms` (milliseconds, null for a configuration that failed); `device` is an optional text.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np
import rfc8785
from numpy.random import Generator
from numpy.typing import NDArray

from ..measure.messages import Failure, MeasureInput, MeasureResult
from .candidate import Features
from .errors import TuningError
from .prior import Prior
from .space import Population, Row
from .task import TuningTask

__all__ = [
    "RecordedColumns",
    "RecordedKnob",
    "RecordedSketch",
    "RecordedSpace",
    "RecordedSpaceError",
    "ReplayDevice",
]

MAX_CONFIGS = 1 << 20
"""The most configurations of a file; all of them are kept in memory."""


class RecordedSpaceError(TuningError):
    """A file is no recorded space: which file, where in it, and what would be right."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is no recorded space: {self.reason}"


@dataclass(frozen=True, slots=True)
class RecordedKnob:
    """A parameter and the values it takes in the table, ascending."""

    name: str
    domain: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """One configuration by its parameters' names."""

    config: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, "config": dict(self.config)}

    def canonical_json(self) -> str:
        return rfc8785.dumps(self.to_json()).decode()


class RecordedColumns:
    """The table's configurations: valid is what stands in it.

    Features are the parameters; for each two of those with more than two values their product and their ratio
    (of v + 1, for a parameter that may be 0): what a tile, a block and their number come to; and the odd part
    of each, and of all together, since what does not divide evenly costs a remainder. A tree sees logarithms
    as it sees the values themselves.
    """

    def __init__(self, knobs: Sequence[RecordedKnob], configs: Population) -> None:
        self.knobs = tuple(knobs)
        self._domains = [np.array(knob.domain, dtype=np.int64) for knob in knobs]
        self._configs = configs
        self._codes = np.sort(self._code(configs))
        self._wide = tuple(n for n, knob in enumerate(knobs) if len(knob.domain) > 2)
        self._pairs = tuple(combinations(self._wide, 2))
        self._shift = np.array([1 if knob.domain[0] < 1 else 0 for knob in knobs], dtype=np.int64)

    @property
    def feature_names(self) -> tuple[str, ...]:
        names = [knob.name for knob in self.knobs]
        products = [f"{names[a]}*{names[b]}" for a, b in self._pairs]
        ratios = [f"{names[a]}/{names[b]}" for a, b in self._pairs]
        odd = [f"odd part of {names[n]}" for n in self._wide]
        return (*names, *products, *ratios, *odd, "product of the odd parts")

    def valid(self, pop: Population) -> NDArray[np.bool_]:
        codes, known = self._code(pop), np.ones(len(pop), dtype=bool)
        for column, domain in enumerate(self._domains):
            known &= np.isin(pop[:, column], domain)
        at = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.asarray(known & (self._codes[at] == codes), dtype=bool)

    def violations(self, pop: Population) -> dict[str, int]:
        return {"in the table": int(np.count_nonzero(~self.valid(pop)))}

    def features(self, pop: Population) -> Features:
        values = pop.astype(np.float32)
        shifted = (pop + self._shift).astype(np.float32)
        products = [shifted[:, a] * shifted[:, b] for a, b in self._pairs]
        ratios = [shifted[:, a] / shifted[:, b] for a, b in self._pairs]
        odd = [_odd_part(pop[:, n]).astype(np.float32) for n in self._wide]
        odd.append(np.prod(odd, axis=0, dtype=np.float32) if odd else np.ones(len(pop), dtype=np.float32))
        return np.ascontiguousarray(np.column_stack([values, *products, *ratios, *odd]), dtype=np.float32)

    def every(self, most: int) -> Population | None:
        """Every configuration of the table, in its order; None where they are more than `most`."""
        return self._configs if len(self._configs) <= most else None

    def neighbours(self, pop: Population) -> Population:
        """The table's configurations that differ from one of `pop` in a single parameter, the nearest in its
        domain first; none of `pop` itself."""
        places = self._places(self._configs)
        far = np.full(len(places), np.iinfo(np.int64).max)
        for row in self._places(pop):
            apart = np.abs(places - row)
            steps = apart.sum(axis=1)
            far = np.where((apart > 0).sum(axis=1) == 1, np.minimum(far, steps), far)
            far[steps == 0] = -1
        near = np.flatnonzero((far > 0) & (far < np.iinfo(np.int64).max))
        return self._configs[near[np.argsort(far[near], kind="stable")]]

    def random(self, n: int, rng: Generator) -> Population:
        return self._configs[rng.integers(0, len(self._configs), n)]

    def mutate(self, pop: Population, n: int, rng: Generator) -> Population:
        """Children of two rows: a quarter of the parameters from the second, one or two moved by a step among
        their values, or drawn anew."""
        if not len(pop):
            return pop[:0]
        first, second = pop[rng.integers(0, len(pop), n)], pop[rng.integers(0, len(pop), n)]
        child = np.where(rng.random(first.shape) < 0.25, second, first)
        for column, domain in enumerate(self._domains):
            moved = rng.random(n) < 1.5 / len(self._domains)
            at = np.searchsorted(domain, child[moved, column])
            step = np.clip(at + rng.choice([-1, 1], len(at)), 0, len(domain) - 1)
            anew = rng.integers(0, len(domain), len(at))
            child[moved, column] = domain[np.where(rng.random(len(at)) < 0.5, step, anew)]
        return child[self.valid(child)]

    def _places(self, pop: Population) -> NDArray[np.int64]:
        """Where in its domain each parameter stands: shape (n, parameters)."""
        at = [np.minimum(np.searchsorted(d, pop[:, n]), len(d) - 1) for n, d in enumerate(self._domains)]
        return np.stack(at, axis=1)

    def _code(self, pop: Population) -> NDArray[np.int64]:
        """One integer for each row of the domains."""
        code = np.zeros(len(pop), dtype=np.int64)
        for domain, place in zip(self._domains, self._places(pop).T, strict=True):
            code = code * len(domain) + place
        return code


@dataclass(frozen=True, slots=True)
class RecordedSketch:
    """All of a recorded space: its parameters are the knobs of one sketch."""

    columns: RecordedColumns
    name: str = "recorded"

    def resolve(self, row: Row) -> RecordedTrace:
        names = (knob.name for knob in self.columns.knobs)
        return RecordedTrace({name: int(value) for name, value in zip(names, row, strict=True)})


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSpace:
    """A `TuningSpace` whose every configuration has a time or a failure.

    configs: int64, shape (n, parameters). seconds: float64, shape (n,), NaN for a failure.
    """

    name: str
    device: str
    configs: Population
    seconds: NDArray[np.float64]
    sketches: tuple[RecordedSketch, ...]
    workload_key: str
    refused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file. Raises RecordedSpaceError for one that is none, and OSError."""
        where = Path(path)
        try:
            raw = where.read_bytes()
            document = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        except (ValueError, EOFError, gzip.BadGzipFile) as error:
            raise RecordedSpaceError(str(where), f"neither JSON nor gzipped JSON ({error})") from error
        return cls.of(document, where.name.removesuffix(".gz").removesuffix(".json"), str(where))

    @classmethod
    def of(cls, document: Any, name: str, path: str = "the document") -> Self:
        """The space that a parsed file describes."""
        params, configs, times = _checked(document, path)
        knobs = [
            RecordedKnob(param, tuple(int(v) for v in np.unique(configs[:, column])))
            for column, param in enumerate(params)
        ]
        identity = rfc8785.dumps({"configs": configs.tolist(), "params": params})
        return cls(
            name=name,
            device=str(document.get("device", "")),
            configs=configs,
            seconds=times / 1e3,
            sketches=(RecordedSketch(RecordedColumns(knobs, configs)),),
            workload_key=hashlib.sha256(identity).hexdigest(),
        )

    @property
    def columns(self) -> RecordedColumns:
        return self.sketches[0].columns

    @property
    def optimum(self) -> float:
        """Seconds of the fastest configuration: for reports, never for a search."""
        return float(np.nanmin(self.seconds))

    @property
    def feature_schema(self) -> int:
        """A number that is the same only for spaces with the same feature columns."""
        names = "\n".join(self.columns.feature_names)
        return int.from_bytes(hashlib.sha256(names.encode()).digest()[:3], "big")

    def task(self) -> TuningTask:
        """The task of searching it through a `ReplayDevice`."""
        target = {"kind": "replay", "device": self.device}
        return TuningTask(
            name=self.name,
            workload={"recorded": self.name},
            script=self.name,
            target=target,
            target_key=hashlib.sha256(rfc8785.dumps(target)).hexdigest(),
            space=self,
            codegen="replay",
            feature_schema=self.feature_schema,
        )

    def prior(self) -> Prior:
        """All of the table, as what another search has measured."""
        failed = np.isnan(self.seconds)
        scores = np.where(failed, 0.0, self.optimum / np.where(failed, 1.0, self.seconds))
        groups = np.zeros(len(scores), dtype=np.int64)
        return Prior(
            self.columns.features(self.configs),
            scores.astype(np.float32),
            groups,
            self.name,
            self.feature_schema,
        )

    def fastest(self, count: int) -> list[tuple[int, ...]]:
        """The `count` fastest configurations, fastest first."""
        order = np.argsort(self.seconds, kind="stable")[:count]
        return [tuple(int(v) for v in self.configs[n]) for n in order if not math.isnan(self.seconds[n])]


class ReplayDevice:
    """A `Measurer` that looks a configuration's time up instead of running it."""

    def __init__(self, space: RecordedSpace) -> None:
        self._params = tuple(knob.name for knob in space.columns.knobs)
        rows = (tuple(row) for row in space.configs.tolist())
        self._seconds = dict(zip(rows, space.seconds.tolist(), strict=True))

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
        config = item.trace["config"]
        seconds = self._seconds.get(tuple(config[name] for name in self._params))
        if seconds is None:
            return MeasureResult.failed(item, Failure("constraint", f"{config} is not in the table"))
        if math.isnan(seconds):
            return MeasureResult.failed(item, Failure("run_error", f"{config} failed when it was recorded"))
        return MeasureResult(item.item, item.attempt, seconds, (seconds,))


def _odd_part(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is left of a number when it is halved as long as it is even; 1 of 0."""
    positive = np.where(values == 0, 1, np.abs(values))
    return np.asarray(positive // (positive & -positive), dtype=np.int64)


def _checked(document: Any, path: str) -> tuple[list[str], Population, NDArray[np.float64]]:
    """Parameters, configurations and milliseconds (NaN for a failure) of a document that is in order."""

    def refuse(reason: str) -> RecordedSpaceError:
        return RecordedSpaceError(path, reason)

    if not isinstance(document, dict):
        raise refuse(
            f"it holds a {type(document).__name__}; an object with params, configs and time_ms is due"
        )
    for key in ("params", "configs", "time_ms"):
        if not isinstance(document.get(key), list):
            raise refuse(f"{key!r} is {'missing' if key not in document else 'no list'}")
    params, configs, times = document["params"], document["configs"], document["time_ms"]
    if not params or not all(isinstance(p, str) and p for p in params) or len(set(params)) < len(params):
        raise refuse(f"params are different names, at least one, not {params}")
    if not 1 <= len(configs) <= MAX_CONFIGS:
        raise refuse(f"it has {len(configs)} configs; 1 to {MAX_CONFIGS} are due")
    if len(configs) != len(times):
        raise refuse(f"{len(configs)} configs have {len(times)} times")
    seen: dict[tuple[int, ...], int] = {}
    for number, config in enumerate(configs):
        if not isinstance(config, list) or len(config) != len(params):
            due = f"a list of {len(params)} values ({', '.join(params)})"
            raise refuse(f"config {number} is {config}; {due} is due")
        for name, value in zip(params, config, strict=True):
            if type(value) is not int or abs(value) >= 1 << 53:
                raise refuse(f"{name} of config {number} is {value!r}; an integer below 2^53 is due")
        other = seen.setdefault(tuple(config), number)
        if other != number:
            raise refuse(f"configs {other} and {number} are the same: {config}")
    for number, time in enumerate(times):
        number_like = type(time) in (int, float) and math.isfinite(time) and time > 0
        if time is not None and not number_like:
            raise refuse(f"time_ms {number} is {time!r}; above 0, or null for a failure, is due")
    if all(time is None for time in times):
        raise refuse("every configuration failed")
    milliseconds = np.array([math.nan if time is None else time for time in times], dtype=np.float64)
    return params, np.array(configs, dtype=np.int64).reshape(len(configs), len(params)), milliseconds
