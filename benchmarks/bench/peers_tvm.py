"""TVM's kernels, tuned by its MetaSchedule, as contenders in this process.

Its search runs with a builder and a runner in this process: its stock ones start a fresh interpreter for
every batch, which mostly times out where cores are few. Everything else is TVM's own. Records are kept in a
folder; the five best by TVM's reading are timed again here, and the fastest is the contender.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import tvm_programs
from .measure import Array, Call, Contender, placed
from .workloads import Workload

#: Records that are timed again.
FINALISTS = 5
#: Seconds that one candidate is timed for in the search.
CANDIDATE_SECONDS = 0.1


class Tvm:
    """TVM with a folder for its records and a number of trials for what the folder does not hold."""

    def __init__(self, folder: Path, trials: int, threads: int, mcpu: str, seed: int) -> None:
        import tvm

        self.folder, self.trials, self.threads, self.seed = folder, trials, threads, seed
        self.target = tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": threads})
        configure = tvm.get_global_func("runtime.config_threadpool", allow_missing=True)
        if configure is not None:
            configure(1, threads)

    def contenders(self, w: Workload) -> dict[str, Contender]:
        """The tuned kernel; none without records or for an operator that tvm_programs lacks."""
        program = tvm_programs.program(w.arguments())
        if program is None:
            return {}
        records = self._records(w.name, program)
        if not records:
            return {}
        from tvm.s_tir.meta_schedule.arg_info import ArgInfo

        built = [b for b in (self._build(r) for r in records) if b is not None]
        args = ArgInfo.from_prim_func(program)
        best = min(built, key=lambda m: _seconds(m, _arrays(args)))
        return {"tvm": Contender(lambda a: _call(best, a), lambda returned, _: returned.numpy())}  # type: ignore[attr-defined]

    def search(self, w: Workload) -> bool:
        """Searches unless the folder has records already; whether there are some now."""
        program = tvm_programs.program(w.arguments())
        return program is not None and bool(self._records(w.name, program))

    def _records(self, name: str, program: Any) -> list[Any]:
        """Schedules of the best records, after a search if there are none and trials are allowed."""
        import tvm
        from tvm.s_tir import meta_schedule as ms

        folder = self.folder / f"{name}-{self.threads}-{self.target.attrs['mcpu']}"
        if not (folder / "database_tuning_record.json").exists():
            if not self.trials:
                return []
            folder.mkdir(parents=True, exist_ok=True)
            self._search(program, folder)
        mod = tvm.IRModule({"main": program})
        database = ms.database.JSONDatabase(
            str(folder / "database_workload.json"), str(folder / "database_tuning_record.json")
        )
        found = database.get_top_k(database.commit_workload(mod), FINALISTS)
        out = []
        for record in found:
            sch = tvm.s_tir.Schedule(mod)
            record.trace.apply_to_schedule(sch, remove_postproc=False)
            out.append(sch.mod)
        return out

    def _search(self, program: Any, folder: Path) -> None:
        import tvm
        from tvm.s_tir import meta_schedule as ms

        logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.WARNING)
        builder, runner = _here()
        ms.tune_tir(
            mod=tvm.IRModule({"main": program}),
            target=self.target,
            work_dir=str(folder),
            max_trials_global=self.trials,
            num_trials_per_iter=min(32, self.trials),
            builder=builder,
            runner=runner,
            measure_callbacks=[ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel()],
            num_tuning_cores=1,
            seed=self.seed + 1,
        )

    def _build(self, mod: Any) -> Any:
        import tvm

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return tvm.tirx.build(mod, self.target)
            except (tvm.TVMError, RuntimeError):
                return None


def _here() -> tuple[Any, Any]:
    """A builder and a runner in this process, which hand modules over by number."""
    import tvm
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    modules: dict[str, Any] = {}

    @derived_object
    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        def build(self, inputs: Sequence[Any]) -> list[Any]:
            out = []
            for given in inputs:
                mod = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(given.mod)
                try:
                    built = tvm.tirx.build(mod, given.target)
                except (tvm.TVMError, RuntimeError) as e:
                    out.append(ms.builder.BuilderResult(None, str(e)))
                    continue
                name = str(len(modules))
                modules[name] = built
                out.append(ms.builder.BuilderResult(name, None))
            return out

    @derived_object
    class Done(ms.runner.PyRunnerFuture):  # type: ignore[misc]
        def __init__(self, seconds: float) -> None:
            super().__init__()
            self.seconds = seconds

        def done(self) -> bool:
            return True

        def result(self) -> Any:
            return ms.runner.RunnerResult([self.seconds], None)

    @derived_object
    class Runner(ms.runner.PyRunner):  # type: ignore[misc]
        def run(self, inputs: Sequence[Any]) -> list[Any]:
            return [self._one(modules.pop(str(given.artifact_path)), given.args_info) for given in inputs]

        def _one(self, module: Any, args: Sequence[Any]) -> Any:
            return Done(_seconds(module, _arrays(args)))

    return Builder(), Runner()


def _arrays(args: Sequence[Any]) -> list[Array]:
    import numpy as np

    return [np.ones([int(e) for e in a.shape], str(a.dtype)) for a in args]


def _seconds(module: Any, arrays: Sequence[Array]) -> float:
    """The least seconds of a call in a short time."""
    call = _call(module, placed(arrays, 16))
    call()
    best, spent = float("inf"), 0.0
    while spent < CANDIDATE_SECONDS:
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


def _call(module: Any, arrays: Sequence[Array]) -> Call:
    """A call without copies: tensors on the arrays' memory, where TVM takes its alignment, else its own."""
    import tvm

    tensors = []
    for a in arrays:
        if a.ctypes.data % 64 == 0:
            tensors.append(tvm.runtime.from_dlpack(a))
        else:
            # TVM's code takes 64-byte aligned tensors only: its own, with the same contents.
            tensors.append(tvm.runtime.tensor(a))
    run: Callable[..., object] = module["main"]

    def call() -> object:
        run(*tensors)
        return tensors[-1]

    return call
