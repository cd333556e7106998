"""What may be stored: what comes from outside is hostile until its type, size and range are checked."""

import json
import math
from collections.abc import Iterable
from typing import NoReturn

from .errors import InvalidValue
from .fleet_records import NewWorker
from .records import NewJob, NewTrial, Settlement
from .words import CACHES, FAILURE_KINDS, HISTORIES, LEAST_SECONDS, MAX_PRIORITY, ORIGINS

_INT_BOUND = 1 << 63
_SHORT = 256
_TEXT = 64 << 10
_DISTURBANCE = 200
_TRACE = 1 << 20
PROGRAM = 8 << 20
_MAX_SAMPLES = 4096


def check_text(field: str, value: str, limit: int = _SHORT, empty: bool = False) -> None:
    """A string that UTF-8 and every SQL database can hold, of at most `limit` characters."""
    if not isinstance(value, str):
        raise InvalidValue(field, f"must be a string, not {type(value).__name__}")
    if not value and not empty:
        raise InvalidValue(field, "must not be empty")
    if len(value) > limit:
        raise InvalidValue(field, f"has {len(value)} characters; at most {limit} are kept")
    if "\0" in value:
        raise InvalidValue(field, "holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValue(field, "holds half of a surrogate pair and is no Unicode text") from None


def check_json(field: str, value: str, limit: int = _TEXT) -> None:
    """A text that a strict JSON parser reads: no NaN or Infinity."""
    check_text(field, value, limit)
    try:
        json.loads(value, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as e:
        raise InvalidValue(field, f"is not JSON: {e}") from None


def check_int(field: str, value: int, least: int) -> None:
    if type(value) is not int:
        raise InvalidValue(field, f"must be an integer, not {type(value).__name__}")
    if value < least:
        raise InvalidValue(field, f"must be at least {least}, not {value}")
    if value >= _INT_BOUND:
        raise InvalidValue(field, "must be below 2**63")


def check_number(field: str, value: float) -> None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(field, f"must be a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise InvalidValue(field, f"must be finite, not {value}")


def check_seconds(field: str, value: float, zero: bool = False) -> None:
    """A finite positive number; with `zero`, 0 too."""
    check_number(field, value)
    if value < 0 or (value == 0 and not zero):
        raise InvalidValue(field, f"must be {'at least' if zero else 'above'} 0, not {value}")


def check_word(field: str, value: str, words: Iterable[str]) -> None:
    if value not in (known := tuple(words)):
        raise InvalidValue(field, f"is {value!r}, which is none of {', '.join(known)}")


def check_limit(limit: int) -> None:
    check_int("limit", limit, 1)
    if limit > 10_000:
        raise InvalidValue("limit", f"must be at most 10000, not {limit}")


def check_workload(key: str, name: str, program: str, script: str) -> None:
    check_text("key", key)
    check_text("name", name)
    check_json("program", program, PROGRAM)
    check_text("script", script, PROGRAM, empty=True)


def check_budget(
    trials: int | None, seconds: float | None, target_seconds: float | None, patience: int | None
) -> None:
    """What is not None is in the range of a budget."""
    for name, count in (("trials", trials), ("patience", patience)):
        if count is not None:
            check_int(name, count, 1)
    for name, limit in (("seconds", seconds), ("target_seconds", target_seconds)):
        if limit is not None:
            check_seconds(name, limit)


def check_job(job: NewJob) -> None:
    check_int("trials", job.trials, 1)
    check_budget(job.trials, job.seconds, job.target_seconds, job.patience)
    check_int("seed", job.seed, -_INT_BOUND)
    check_text("strategy", job.strategy)
    check_seconds("worker_wait", job.worker_wait, zero=True)
    check_word("origin", job.origin, ORIGINS)
    check_word("history", job.history, HISTORIES)
    check_json("spec", job.spec, PROGRAM)
    if job.pool is not None:
        check_text("pool", job.pool)
    check_labels("labels", job.labels)
    check_int("priority", job.priority, -MAX_PRIORITY)
    if job.priority > MAX_PRIORITY:
        raise InvalidValue("priority", f"must be at most {MAX_PRIORITY}, not {job.priority}")
    check_text("account", job.account, empty=True)


def check_labels(field: str, value: str) -> None:
    """The JSON text of an object of strings."""
    check_json(field, value)
    labels = json.loads(value)
    if not isinstance(labels, dict) or not all(isinstance(each, str) for each in labels.values()):
        raise InvalidValue(field, 'must be an object of strings such as {"board": "rpi4"}')


def check_features(features: bytes) -> None:
    if not isinstance(features, bytes) or len(features) > _TRACE:
        raise InvalidValue("features", f"must be bytes, at most {_TRACE} of them")


def check_trial(trial: NewTrial) -> None:
    check_int("number", trial.number, 0)
    check_int("batch", trial.batch, 0)
    check_text("candidate_key", trial.candidate_key)
    check_text("sketch", trial.sketch)
    check_json("trace", trial.trace, _TRACE)
    check_features(trial.features)
    check_int("feature_schema", trial.feature_schema, 0)
    check_int("input_seed", trial.input_seed, -_INT_BOUND)
    if trial.predicted is not None:
        check_number("predicted", trial.predicted)
    check_text("origin", trial.origin, empty=True)


def check_worker(worker: NewWorker) -> None:
    check_text("name", worker.name)
    check_text("session", worker.session)
    check_int("protocol", worker.protocol, 1)
    check_json("versions", worker.versions)
    check_labels("labels", worker.labels)
    check_json("facts", worker.facts)
    check_text("codegen_version", worker.codegen_version)
    if worker.pool is not None:
        check_text("pool", worker.pool)


def check_settlement(settlement: Settlement, at: str = "settlement") -> None:
    """Seconds with an output that passed its check, or a typed failure, and never both."""
    check_int(f"{at}.attempt", settlement.attempt, 1)
    check_seconds(f"{at}.build_seconds", settlement.build_seconds, zero=True)
    check_seconds(f"{at}.wall_seconds", settlement.wall_seconds, zero=True)
    check_text(f"{at}.failure_message", settlement.failure_message, _TEXT, empty=True)
    check_json(f"{at}.failure_detail", settlement.failure_detail)
    if settlement.codegen_version is not None:
        check_text(f"{at}.codegen_version", settlement.codegen_version)
    if settlement.error is not None:
        check_seconds(f"{at}.error", settlement.error, zero=True)
    if settlement.calls is not None:
        check_int(f"{at}.calls", settlement.calls, 1)
    if settlement.cache is not None:
        check_word(f"{at}.cache", settlement.cache, CACHES)
    check_text(f"{at}.disturbance", settlement.disturbance, _DISTURBANCE, empty=True)
    if len(settlement.baseline) not in (0, 2):
        raise InvalidValue(f"{at}.baseline", "must be the seconds before and after, or nothing")
    for i, seconds in enumerate(settlement.baseline):
        check_seconds(f"{at}.baseline[{i}]", seconds)
    if not isinstance(settlement.samples, tuple) or len(settlement.samples) > _MAX_SAMPLES:
        raise InvalidValue(f"{at}.samples", f"must be a tuple of at most {_MAX_SAMPLES} numbers")
    for i, sample in enumerate(settlement.samples):
        check_seconds(f"{at}.samples[{i}]", sample)
    if settlement.failure_kind is None:
        _check_success(settlement, at)
    else:
        _check_failure(settlement, at)


def _check_success(settlement: Settlement, at: str) -> None:
    if settlement.seconds is None:
        raise InvalidValue(f"{at}.seconds", "is missing, and there is no failure_kind either")
    check_seconds(f"{at}.seconds", settlement.seconds)
    if settlement.seconds < LEAST_SECONDS:
        raise InvalidValue(
            f"{at}.seconds",
            f"must be at least {LEAST_SECONDS:g}, not {settlement.seconds}: no call takes less",
        )
    if settlement.error is not None and settlement.error > 1:
        raise InvalidValue(
            f"{at}.error",
            f"is {settlement.error} tolerances: that is a wrong_output, whose time does not count",
        )


def _check_failure(settlement: Settlement, at: str) -> None:
    check_word(f"{at}.failure_kind", str(settlement.failure_kind), FAILURE_KINDS)
    if settlement.seconds is not None:
        raise InvalidValue(f"{at}.seconds", f"is given, but so is the failure {settlement.failure_kind}")
    for name in ("censored", "disturbed", "baseline"):
        if getattr(settlement, name):
            raise InvalidValue(f"{at}.{name}", f"is true, but so is the failure {settlement.failure_kind}")


def refuse_constant(word: str) -> NoReturn:
    """For `json.loads`, which takes NaN and Infinity for numbers."""
    raise ValueError(f"{word} is not a JSON number")
