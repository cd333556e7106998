"""The steps of the doctor that look at this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from ..measure.device_lock import DeviceBusy
from ..measure.errors import MeasureError
from ..measure.exits import Exit
from ..measure.golden import golden_items
from ..measure.health import GRADES, attached, reading_of
from ..measure.health_messages import HealthPlan, PartName
from ..measure.messages import MeasureInput
from ..measure.runner import Runner
from ..measure.self_test import protections, timer_resolution
from ..measure.words import duration_of, size_of
from .doctor import Step, Trouble, Warned
from .worker_setup import WorkerSetup

__all__ = ["MachineSteps"]

_PROCESSES = 5
_LEAST_MEMORY = 1 << 30
_LEAST_ROOM = 100 << 20
_COARSE_SECONDS = 1e-5
_CPU = Path("/sys/devices/system/cpu")


@dataclass(slots=True)
class MachineSteps:
    """Whether kernels can be built and run here, in confinement, and timed well."""

    setup: WorkerSetup
    cpu: Path = _CPU
    _runner: Runner | None = field(default=None, init=False)
    _items: dict[PartName, MeasureInput] = field(default_factory=dict, init=False)

    def steps(self) -> list[Step]:
        return [
            Step("device", self.device),
            Step("timer", self.timer),
            Step("governor", self.governor),
            Step("load", self.load),
            Step("memory", self.memory),
            Step("temporary files", self.temporary_files),
            Step("sandbox", self.sandbox),
            Step("kernel", self.kernel, ("sandbox",)),
            Step("golden kernel", self.golden_kernel, ("kernel",)),
        ]

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    def device(self) -> str | Warned:
        with self.setup.lock() as lock:
            try:
                lock.acquire()
            except DeviceBusy as error:
                if self.setup.settings.worker_wait_for_device:
                    return Warned(f"{error}; a worker would wait for it")
                raise Trouble(str(error), Exit.DEVICE_BUSY) from error
            except MeasureError as error:
                raise Trouble(str(error), Exit.FAILED) from error
        return f"{self.setup.device}, which no other worker has"

    def timer(self) -> str | Warned:
        resolution = timer_resolution()
        words = f"processor time moves in steps of {duration_of(resolution)}"
        return Warned(words) if resolution > _COARSE_SECONDS else words

    def governor(self) -> str | Warned:
        """Whether the processor's frequency is left alone."""
        governor = _text(self.cpu / "cpu0/cpufreq/scaling_governor")
        boost = _text(self.cpu / "cpufreq/boost") == "1" or _text(self.cpu / "intel_pstate/no_turbo") == "0"
        turbo = "; it may exceed its base frequency for a while" if boost else ""
        if governor is None:
            return f"the system does not tell{turbo}"
        words = f"{governor}{turbo}"
        return Warned(words) if governor not in ("performance", "schedutil") or boost else words

    def load(self) -> str | Warned:
        busy, cores = os.getloadavg()[0], os.cpu_count() or 1
        words = f"{busy:.1f} tasks run on {cores} processors"
        return Warned(f"{words}: times will be disturbed") if busy > cores / 2 else words

    def memory(self) -> str | Warned:
        import psutil

        free = psutil.virtual_memory().available
        words = f"{size_of(free)} free"
        return Warned(words) if free < _LEAST_MEMORY else words

    def temporary_files(self) -> str | Warned:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        words = f"{size_of(free)} free in {folder}"
        return Warned(words) if free < _LEAST_ROOM else words

    def sandbox(self) -> str | Warned:
        try:
            found = protections()
        except MeasureError as error:
            raise Trouble(f"no candidate can be run: {error}", Exit.FAILED) from error
        limits = ", ".join(f"{what} {limit}" for what, limit in found.limits.items())
        privileges = {True: "no_new_privs", False: "may gain privileges", None: "no_new_privs unknown"}
        words = (
            f"limits: {limits}; {privileges[found.no_new_privs]}; user {found.user}; "
            f"{'process group of its own' if found.own_group else 'shared process group'}; descriptors "
            f"{', '.join(map(str, found.descriptors))}; {found.variables} environment variables"
        )
        return Warned(f"{'; '.join(found.missing)} ({words})") if found.missing else words

    def kernel(self) -> str:
        """Builds a small kernel, runs it in the sandbox, and checks its output."""
        try:
            self._items = golden_items()
            self._runner = Runner()
            result = self._runner.measure(self._items["compute"])
        except Exception as error:  # whatever a machine does to a first kernel is what is asked for
            raise Trouble(f"{type(error).__name__}: {error}", Exit.FAILED) from error
        if result.failure is not None:
            words = f"\n{result.failure.last_words}" if result.failure.last_words else ""
            raise Trouble(f"{result.failure.kind}: {result.failure.message}{words}", Exit.FAILED)
        assert result.seconds is not None, "a result without failure has seconds"
        return f"built in {duration_of(result.build_seconds)}, right, {duration_of(result.seconds)} a call"

    def golden_kernel(self) -> str | Warned:
        """How much fresh processes differ."""
        assert self._runner is not None, "this step stands on the kernel's"
        readings: dict[PartName, list[float]] = {part: [] for part in self._items}
        for _ in range(_PROCESSES):
            for part, item in self._items.items():
                result = self._runner.measure(item)
                if result.failure is not None:
                    raise Trouble(f"{part}: {result.failure.kind}: {result.failure.message}", Exit.FAILED)
                assert result.seconds is not None, "a result without failure has seconds"
                readings[part].append(result.seconds)
        norm, _ = attached(readings, HealthPlan())
        said = [f"{part} {duration_of(least)} ± {spread:.1%}" for part, (least, spread) in _read(readings)]
        words = f"{norm.grade.name}: {', '.join(said)} over {_PROCESSES} processes"
        return Warned(words) if norm.grade is GRADES[-1] else words


def _read(readings: dict[PartName, list[float]]) -> list[tuple[PartName, tuple[float, float]]]:
    return [(part, reading_of(seconds)) for part, seconds in readings.items()]


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
