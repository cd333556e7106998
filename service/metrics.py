"""What Prometheus reads: this process' requests and transactions, and how many there are of what in the
database.

With several API processes behind one socket a scrape reaches one of them: what it counts itself has its
number as the label `process`, so that the series of the others are not taken for its own; they are to be
summed. The gauges, which all of them read from one database, are not. No label is anything that a client may
choose.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..db.errors import StoreError
from ..db.service_records import Census
from ..db.words import OUTCOMES
from ..measure.messages import PROTOCOL

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CENSUS_SECONDS = 2.0
NO_ROUTE = "none"
HUNG_UP = 499
"""The status, as web servers note it, of a request that nobody was there to have answered."""


class Metrics:
    """A registry of its own: two applications in one process do not share what they count."""

    def __init__(self, census: Callable[[], Census], codegen: str, process: int = 0) -> None:
        self.registry = CollectorRegistry()
        self._process = str(process)
        self._database = CollectorRegistry()
        self.requests = Counter(
            "tilewright_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "tilewright_http_request_seconds",
            "From a request to the end of its answer, waiting included.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.in_progress = Gauge(
            "tilewright_http_requests_in_progress", "Requests being answered.", registry=self.registry
        )
        self.database_seconds = Histogram(
            "tilewright_database_transaction_seconds",
            "Transactions of the database, waiting for its lock included.",
            ("kind",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.leases = Counter("tilewright_leases_granted", "Leases given to workers.", registry=self.registry)
        self.settled = Counter(
            "tilewright_trials_settled",
            "Results of trials taken from workers and from outside.",
            ("outcome",),
            registry=self.registry,
        )
        for outcome in OUTCOMES[2:]:
            self.settled.labels(outcome)
        build = Gauge(
            "tilewright_build_info",
            "What this is.",
            ("version", "codegen", "protocol"),
            registry=self.registry,
        )
        build.labels(version("tilewright"), codegen, str(PROTOCOL)).set(1)
        self._database.register(_FromDatabase(census))

    def text(self) -> bytes:
        """The exposition. Where the database does not answer, what comes from it is missing, and
        `tilewright_database_up` is 0."""
        own = generate_latest(_Labelled(self.registry, {"process": self._process}))
        return own + generate_latest(self._database)

    def transaction(self, kind: str, seconds: float) -> None:
        self.database_seconds.labels(kind).observe(seconds)


class _Labelled:
    """What a registry holds, with the same labels on every sample."""

    def __init__(self, registry: CollectorRegistry, labels: Mapping[str, str]) -> None:
        self._registry = registry
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [
                sample._replace(labels={**sample.labels, **self._labels}) for sample in family.samples
            ]
            yield family


class _FromDatabase:
    """A collector: reads the database at most every two seconds, however many ask."""

    def __init__(self, census: Callable[[], Census]) -> None:
        self._census = census
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._known: Census | None = None

    def describe(self) -> list[Metric]:
        return []  # nothing is read at registration

    def collect(self) -> Iterator[Metric]:
        known = self._fresh()
        yield GaugeMetricFamily(
            "tilewright_database_up", "Whether the database answers.", value=float(known is not None)
        )
        if known is None:
            return
        for name, help_, label, counts in (
            ("tilewright_jobs", "Jobs by state.", "state", known.jobs),
            ("tilewright_workers", "Workers by state.", "state", known.workers),
            (
                "tilewright_trials_unmeasured",
                "Trials of unfinished jobs without a result: pending ones are the queue.",
                "outcome",
                {"pending": known.queued, "started": known.started},
            ),
        ):
            family = GaugeMetricFamily(name, help_, labels=(label,))
            for word, count in counts.items():
                family.add_metric((word,), count)
            yield family
        yield GaugeMetricFamily("tilewright_leases_open", "Leases that are held.", value=known.leases)
        yield GaugeMetricFamily(
            "tilewright_queue_oldest_seconds",
            "Age of the oldest job with a trial in the queue.",
            value=known.oldest_queued,
        )
        yield SummaryMetricFamily(
            "tilewright_search_seconds",
            "Wall time of the searches of finished jobs.",
            count_value=known.searches,
            sum_value=known.search_seconds,
        )

    def _fresh(self) -> Census | None:
        with self._lock:
            if time.monotonic() - self._read_at > _CENSUS_SECONDS:
                try:
                    self._known = self._census()
                except StoreError:  # `readyz` says why; what cannot be counted is not shown
                    self._known = None
                self._read_at = time.monotonic()
            return self._known


class Measuring:
    """ASGI middleware: counts each request by the template of its route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = HUNG_UP

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_progress.inc()
        try:
            await self._app(scope, receive, seen)
        except BaseException:
            status = 500 if status == HUNG_UP else status
            raise
        finally:
            self._metrics.in_progress.dec()
            method, route = method_of(scope), route_of(scope)
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.request_seconds.labels(method, route).observe(time.perf_counter() - begun)


def method_of(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"


def route_of(scope: Scope) -> str:
    """The template of the route that a request was given to, such as /v1/jobs/{job_id}; `none` without."""
    return getattr(scope.get("route"), "path", NO_ROUTE)
