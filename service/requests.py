"""What the API's bodies may say. Strict: no key beside these, no string for a number."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ..db.words import DEFAULT_BATCH, LEAST_SECONDS, MAX_PRIORITY, MOST_BATCH, Scope
from .durations import LONGEST_TOKEN_LIFE

Strategy = Literal["annealing", "evolutionary", "grid", "guided", "local", "random"]
HardwareKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Label = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^=]+$")]
MAX_SECONDS = 30 * 86_400.0


def _name_or_object(target: Any) -> Any:
    if not isinstance(target, str | dict):
        raise ValueError('must be a name such as "llvm" or an object such as {"kind": "llvm"}')
    return target


class Request(BaseModel):
    """A body: keys that are not named here are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Budget(Request):
    """When a search ends: with whatever of these comes first."""

    trials: int = Field(64, ge=1, description="candidates to measure")
    seconds: float | None = Field(None, gt=0, le=MAX_SECONDS, description="wall time of the search")
    target_seconds: float | None = Field(
        None, gt=0, le=MAX_SECONDS, description="a schedule that takes at most so long is good enough"
    )
    patience: int | None = Field(
        None, ge=1, le=2**53 - 1, description="so many trials in a row without a new best end the search"
    )


class Extension(Request):
    """A larger budget, in new totals: what is not named stays, and null lifts a limit."""

    trials: int | None = Field(None, ge=1, description="candidates to measure, all in all")
    seconds: float | None = Field(
        None, gt=0, le=MAX_SECONDS, description="wall time of the search, all in all"
    )
    target_seconds: float | None = Field(
        None, gt=0, le=MAX_SECONDS, description="a schedule that takes at most so long is good enough"
    )
    patience: int | None = Field(
        None, ge=1, le=2**53 - 1, description="so many trials in a row without a new best end the search"
    )


class ExtendRequest(Request):
    """What a job may use from now on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget": {"trials": 128}}]})

    budget: Extension


class JobRequest(Request):
    """A tuning job: which program, for what, how long to search."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "workload": {"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"},
                    "target": "llvm",
                    "budget": {"trials": 64, "seconds": 600},
                }
            ]
        }
    )

    workload: dict[str, Any] = Field(
        description="an operator and its arguments (GET /v1/operators), or a program as canonical IR JSON"
    )
    target: Annotated[Any, AfterValidator(_name_or_object)] = Field(
        "llvm", description="a target's name, or an object of its attributes"
    )
    budget: Budget = Budget(trials=64, seconds=None, target_seconds=None, patience=None)
    hardware: HardwareKey | None = Field(
        None, description="hardware key to measure on; needed when workers of several kinds are attached"
    )
    seed: int = Field(0, ge=0, le=2**53 - 1, description="the same seed makes the same search")
    strategy: Strategy = "guided"
    worker_wait: float | None = Field(
        None, gt=0, le=MAX_SECONDS, description="seconds to wait for a worker before the job fails"
    )
    history: Literal["use", "ignore"] = Field(
        "use", description="whether what was measured before informs the search, or is measured again"
    )
    suggestions: list[dict[str, Any]] = Field(
        [],
        max_length=64,
        description='schedules to try first: traces, or {"sketch": name, "knobs": {name: value}}',
    )
    batch: int = Field(
        DEFAULT_BATCH,
        ge=1,
        le=MOST_BATCH,
        description="candidates that are proposed at a time; at most twice as many are measured at once, so "
        "give half the number of workers where those are many",
    )
    measure: Literal["workers", "outside"] = Field(
        "workers", description="who measures: the fleet, or whoever uses trials:ask and trials:tell"
    )
    pool: str | None = Field(
        None, min_length=1, max_length=100, description="only workers of this pool measure it"
    )
    labels: dict[Label, Annotated[str, Field(max_length=128)]] = Field(
        {},
        max_length=16,
        description='only workers that have all of these measure it, such as {"board": "rpi4"}',
    )
    priority: int = Field(
        0,
        ge=-MAX_PRIORITY,
        le=MAX_PRIORITY,
        description="each step is twice the share of workers, among the jobs of the same token",
    )
    validate_only: bool = Field(False, description="check the request and create nothing")


class BatchRequest(Request):
    """Jobs that are created together or not at all, each with a budget of its own."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "jobs": [
                        {"workload": {"op": "matmul", "m": 64, "n": 64, "k": n, "dtype": "float32"}}
                        for n in (64, 128)
                    ]
                }
            ]
        }
    )

    jobs: list[JobRequest] = Field(min_length=1, max_length=64)


class AskRequest(Request):
    """Trials to measure, for whoever asks."""

    count: int = Field(1, ge=1, le=64)
    holder: str = Field(
        "", max_length=100, description="who measures them: the same name is given the same trials again"
    )


class TellFailure(Request):
    """How a trial failed."""

    kind: Literal["build_error", "build_timeout", "run_error", "run_timeout", "wrong_output", "constraint"]
    message: str = Field("", max_length=4096)


class TellRequest(Request):
    """What came of a trial: `seconds` per call, the least of its `samples` if it has any, or a `failure`."""

    number: int = Field(ge=0, le=2**53 - 1, description="the trial")
    seconds: float | None = Field(None, ge=LEAST_SECONDS, le=MAX_SECONDS)
    failure: TellFailure | None = None
    samples: list[Annotated[float, Field(gt=0)]] = Field([], max_length=4096)
    error: float | None = Field(
        None,
        ge=0,
        le=1,
        description="the error of its output, in tolerances; without one it never becomes best-known",
    )
    codegen: str | None = Field(None, min_length=1, max_length=100, description="what generated its code")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.seconds is None) == (self.failure is None):
            raise ValueError("must have either seconds or a failure")
        if self.seconds is not None and self.samples and self.seconds != min(self.samples):
            raise ValueError(f"seconds are the least of the samples, {min(self.samples)!r}, if there are any")
        return self


class TokenRequest(Request):
    """A token to make."""

    name: str = Field(min_length=1, max_length=100, description="whose it is, for people")
    scopes: list[Scope] = Field(min_length=1, max_length=6)
    pool: str | None = Field(None, min_length=1, max_length=100)
    expires_seconds: float | None = Field(
        None, gt=0, le=LONGEST_TOKEN_LIFE, description="life time; none: it does not expire"
    )
    max_jobs: int | None = Field(None, ge=0, le=10**9, description="unfinished jobs that it may have")
    max_trials: int | None = Field(
        None, ge=0, le=10**12, description="trials without a result that those may have, together"
    )
    rate: float | None = Field(None, ge=0.001, le=10**6, description="requests a second that it may make")


class WorkerNote(Request):
    """Why something is done to a worker: everyone who looks at it reads it."""

    note: str = Field("", max_length=1000)


class PauseWorkerRequest(WorkerNote):
    """A pause, which ends by itself after `seconds`, if given."""

    seconds: float | None = Field(None, gt=0, le=MAX_SECONDS)


class QuarantineRequest(Request):
    """What is wrong with a worker, and since when its results are not believed."""

    note: str = Field(min_length=1, max_length=1000)
    since_seconds: float | None = Field(
        None,
        ge=0,
        le=3650 * 86_400.0,
        description="results of so many seconds do not count; none: those since its last healthy check",
    )


class ReleaseRequest(Request):
    restore_results: bool = Field(False, description="believe again what it measured before")


class RemoveRequest(WorkerNote):
    discard_results: bool = Field(False, description="nothing that it ever measured counts any more")


class ClearCrashRequest(Request):
    """A candidate that may run again on a kind of hardware."""

    candidate: str = Field(min_length=1, max_length=256)
    hardware: str = Field(min_length=1, max_length=256)


class ReportRequest(Request):
    """Why a schedule does not replay, as the compiler says it."""

    reason: str = Field(min_length=1, max_length=16_384)


class RetireRequest(Request):
    """Why a schedule is not to be served any more."""

    reason: str = Field(min_length=1, max_length=16_384)


class PinRequest(Request):
    """What is wanted for a key; `trial` null: the default schedule."""

    workload: HardwareKey
    target: HardwareKey
    hardware: HardwareKey
    trial: str | None = Field(max_length=256)
    note: str = Field("", max_length=4096, description="why, for people")


class FreezeRequest(Request):
    """A freeze to make."""

    name: str = Field(min_length=1, max_length=256)
    note: str = Field("", max_length=4096, description="what for, for people")


class ImportRequest(Request):
    """Records of another store, a line each, as its export writes them."""

    lines: list[Annotated[str, Field(max_length=8 << 20)]] = Field(min_length=1, max_length=1000)
